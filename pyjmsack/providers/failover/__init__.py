"""Failover: a provider that keeps what is open and what is under way, and gives it to the next broker (S90-S109)."""
