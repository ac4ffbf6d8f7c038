"""Learning from use: receipts, outcomes, memory, reliability, use."""
