"""Failover: a provider that remembers open objects and unanswered requests, and gives them to the next broker
(S90-S109)."""
