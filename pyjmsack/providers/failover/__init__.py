"""Failover: a provider that remembers the open objects and the unanswered requests, and repeats both at the next broker
(S90-S109)."""
