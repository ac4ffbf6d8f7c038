"""Stand-ins for servers of language models, and bytes that no server should send."""
