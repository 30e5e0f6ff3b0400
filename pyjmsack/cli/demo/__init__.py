"""``pyjmsack demo``: real files through a real broker in every acknowledge mode, and a proof that no message was lost.

``rows`` has the table of runs. ``source`` reads the input. ``sending`` and ``receiving`` are the two ends with the
blocking face, and ``asyncio_end`` has both ends with the asyncio face. ``killing`` kills the broker. ``ledger`` records
the lines at the receiving end. ``running`` decides which rows run when. ``report`` prints the result. ``auditing``
audits the ledger that the connections of the demo write.
"""

from pyjmsack.cli.demo.command import demo

__all__ = ["demo"]
