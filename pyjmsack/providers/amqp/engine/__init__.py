"""AMQP 1.0 for a client, without sockets, threads or clocks.

The caller passes in the bytes of the peer and gets events. The caller calls methods, such as ``send``, and gets the
bytes for the peer.

::

    connection = Connection(max_frame_size=1 << 20, idle_timeout=60.0)
    connection.open(Open(container_id="me"))
    session = connection.begin()
    link = session.attach_sender(Attach(link_name="s", handle=0, role=False, target=Target(address="q")))
    ...
    for event in connection.receive(data_of_the_socket):
        if event[0] == CREDIT:
            event[1].send(message, context)
    socket.write(connection.data_to_send())

Frames are sent in the order of the calls. :mod:`.events` lists the events. If a peer breaks the specification, the
engine ends the connection: it sends a Close frame with the right error, and the caller gets ``FAILED``. A peer can make
the engine use only a limited amount of memory, because there are limits for the size of a frame, for the size of a
message (``max_message_size``), and for the number of messages (the credit).

Each file implements a part of the specification: :mod:`.frames` 2.2, 2.3; :mod:`.performatives` 2.7, 2.8, 3.4, 3.5,
4.5; :mod:`.connection` 2.4; :mod:`.session` 2.5; :mod:`.link` 2.6; :mod:`.deliveries` 2.6.12, 2.6.14.
"""

from __future__ import annotations

from pyjmsack.providers.amqp.engine.connection import Connection
from pyjmsack.providers.amqp.engine.errors import StateError
from pyjmsack.providers.amqp.engine.link import Link, ReceiverLink, SenderLink
from pyjmsack.providers.amqp.engine.session import Session

__all__ = ["Connection", "Link", "ReceiverLink", "SenderLink", "Session", "StateError"]
