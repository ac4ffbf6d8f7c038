"""What would keep a deployment from working in an account, found before it (`make preflight`)."""
