"""The version of this library, which brokers are told when a connection opens."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
"""The version in ``pyproject.toml``. To read it from the installation takes 12 ms, which each start would pay."""
