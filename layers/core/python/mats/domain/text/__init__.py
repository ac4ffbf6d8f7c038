"""Text as data: words, languages, look-alike characters, fences around untrusted text, redaction of secrets."""
