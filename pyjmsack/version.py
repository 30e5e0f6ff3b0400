"""The version of this library. A client tells the version to the broker when a connection opens."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
"""The version in ``pyproject.toml``. It is repeated here, because reading it from the installation would make each
start 12 ms slower."""
