"""``pyjmsack dlq``: shows dead letters, sends them back to their origin, moves, exports or destroys them.

``letters`` finds the origin and the cause of a dead letter. ``choosing`` has the options that choose dead letters, and
browses the chosen ones. ``groups`` counts dead letters by origin and cause. ``moving`` moves them in rounds, and
``command`` has the commands.
"""

from pyjmsack.cli.dlq.command import dlq

__all__ = ["dlq"]
