"""AMQP 1.0 for a client, without sockets, threads or clocks: bytes in, events out; verbs in, bytes out.

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

Frames leave in the order of the verbs. :mod:`.events` lists what comes back. A peer that breaks the specification ends
the connection: it is sent a Close with the right condition, and the caller gets ``FAILED``. What a peer may make us
allocate is bounded: a frame by its size, a message by ``max_message_size``, the number of messages by credit.

The files, each with the part of the specification that it knows: :mod:`.frames` 2.2, 2.3; :mod:`.performatives` 2.7,
2.8, 3.4, 3.5, 4.5; :mod:`.connection` 2.4; :mod:`.session` 2.5; :mod:`.link` 2.6; :mod:`.deliveries` 2.6.12, 2.6.14.
"""

from __future__ import annotations

from pyjmsack.providers.amqp.engine.connection import Connection
from pyjmsack.providers.amqp.engine.errors import StateError
from pyjmsack.providers.amqp.engine.link import Link, ReceiverLink, SenderLink
from pyjmsack.providers.amqp.engine.session import Session

__all__ = ["Connection", "Link", "ReceiverLink", "SenderLink", "Session", "StateError"]
