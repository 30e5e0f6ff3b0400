"""``pyjmsack demo``: real files through a real broker in every acknowledge mode, and a proof that no message was lost.

``rows`` has the table of runs. ``source`` reads the input. ``sending`` and ``receiving`` are the two ends, and
``asyncio_end`` is both ends over the asyncio face. ``killing`` kills the broker. ``ledger`` records the lines at the
receiving end. ``running`` decides which rows run when. ``report`` prints the result. ``auditing`` audits the ledger of
the demo itself.
"""

from pyjmsack.cli.demo.command import demo

__all__ = ["demo"]
