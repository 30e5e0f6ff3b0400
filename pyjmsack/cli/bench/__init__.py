"""``pyjmsack bench``: measures how fast a broker is, and how long one message takes.

``histogram`` counts times in little memory, ``plan`` says how much work a run does, ``clients`` does the work in
threads, ``own_queue`` names and removes the queue of a run, ``report`` shows the figures, ``command`` has the commands.
"""

from pyjmsack.cli.bench.command import bench

__all__ = ["bench"]
