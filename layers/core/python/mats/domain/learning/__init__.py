"""Learning from use: receipts, outcomes, memory, use."""
