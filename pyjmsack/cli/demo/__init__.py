"""``pyjmsack demo``: real files through a real broker in every acknowledge mode, and a proof that no message was lost.

``rows`` is the table of runs, ``source`` the input, ``sending`` and ``receiving`` the two ends, ``asyncio_end`` both
ends over the asyncio face, ``killing`` kills the broker, ``ledger`` the bookkeeping at the receiving end, ``running``
decides which rows run when, ``report`` prints the result, ``auditing`` audits the ledger of the demo itself.
"""

from pyjmsack.cli.demo.command import demo

__all__ = ["demo"]
