"""Brokers and connections that fail while messages flow."""
