"""``pyjmsack demo``: real files through a real broker in every acknowledge mode, and proof that nothing was lost.

``rows`` is the table of what is run, ``source`` the input, ``sending`` and ``receiving`` the two ends, ``asyncio_end``
both ends over the asyncio face, ``killing`` what the broker suffers, ``ledger`` the bookkeeping at the receiving end,
``running`` which rows run when, ``report`` the result, ``auditing`` the ledger of the demo itself.
"""

from pyjmsack.cli.demo.command import demo

__all__ = ["demo"]
