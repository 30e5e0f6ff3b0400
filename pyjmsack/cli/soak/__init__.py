"""``pyjmsack soak``: load for minutes, while the broker is killed again and again, and proof that nothing was lost.

``load`` is one flow of numbered messages, ``ledger`` its bookkeeping, ``faults`` the ways to kill, ``run`` puts them
together, ``report`` is the result.
"""

from pyjmsack.cli.soak.command import soak

__all__ = ["soak"]
