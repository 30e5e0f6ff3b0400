"""Celery and kombu on ActiveMQ Artemis and Classic: a transport for kombu, over AMQP 1.0 and STOMP.

``broker_transport = "pyjmsack.kombu:Transport"`` names the transport to Celery. After ``import pyjmsack.kombu`` the
schemes ``jms+amqp``, ``jms+amqps``, ``jms+stomp``, ``jms+stomp+ssl`` and ``jms+failover`` work, too, in Celery's
``broker_url`` and in ``kombu.Connection``. docs/howto/celery.md is the guide.

Importing this package needs the extra ``[celery]``.
"""

from __future__ import annotations

from pyjmsack.extras import missing_extra

try:
    from kombu.transport import TRANSPORT_ALIASES
except ImportError as error:
    raise ImportError(missing_extra("celery", "pyjmsack.kombu", error)) from error

from pyjmsack.kombu.channel import Channel
from pyjmsack.kombu.transport import SCHEMES, Transport

__all__ = ["Channel", "Transport"]

for _scheme in SCHEMES:
    TRANSPORT_ALIASES.setdefault(_scheme, "pyjmsack.kombu:Transport")
