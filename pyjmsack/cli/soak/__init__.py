"""``pyjmsack soak``: puts load on a broker for minutes, kills it again and again, and proves that no message was lost.

``load`` is one flow of numbered messages, and ``ledger`` records its messages. ``faults`` has the ways to kill. ``run``
joins these parts, and ``report`` judges the result.
"""

from pyjmsack.cli.soak.command import soak

__all__ = ["soak"]
