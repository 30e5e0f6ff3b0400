"""``python -m pyjmsack``, and the command ``pyjmsack``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. If Ctrl-C comes while the modules are imported, exit without a traceback."""
    try:
        from pyjmsack.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
