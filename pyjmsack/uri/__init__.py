"""Turns the text of broker URLs and options into typed values that cannot be changed. This package declares every
option of the library, including the limits that a user can set.

- :func:`parse_url` reads the URL of a broker.
- :func:`parse_destination_options` reads the options of a destination.
- :func:`redact` removes passwords from a URL, for logs.
- ``OPTIONS`` is the table of all options of a broker URL. The documentation is made from this table.

The names, units and defaults come from the configuration pages of Qpid JMS and ActiveMQ Classic.
"""

from pyjmsack.uri.address import check_plain, redact, shows_no_secret
from pyjmsack.uri.connection import ConnectionOptions
from pyjmsack.uri.destination import DESTINATION_OPTIONS, DestinationOptions, parse_destination_options
from pyjmsack.uri.failover import DuplicateGuard, FailoverOptions
from pyjmsack.uri.model import BrokerUrl
from pyjmsack.uri.option import Kind, Option, Secret, option, store_conversion
from pyjmsack.uri.parse import parse_url
from pyjmsack.uri.policy import OPTIMIZED_SHARE, PrefetchPolicy, PresettlePolicy, RedeliveryPolicy, prefetch_for
from pyjmsack.uri.protocols import AmqpOptions, StompOptions
from pyjmsack.uri.table import IGNORED, IGNORED_OF_DESTINATIONS, IGNORED_PREFIXES, OPTIONS, REFUSED
from pyjmsack.uri.transport import SCHEMES, Endpoint, Scheme, TransportOptions

__all__ = [
    "DESTINATION_OPTIONS",
    "IGNORED",
    "IGNORED_OF_DESTINATIONS",
    "IGNORED_PREFIXES",
    "OPTIMIZED_SHARE",
    "OPTIONS",
    "REFUSED",
    "SCHEMES",
    "AmqpOptions",
    "BrokerUrl",
    "ConnectionOptions",
    "DestinationOptions",
    "DuplicateGuard",
    "Endpoint",
    "FailoverOptions",
    "Kind",
    "Option",
    "PrefetchPolicy",
    "PresettlePolicy",
    "RedeliveryPolicy",
    "Scheme",
    "Secret",
    "StompOptions",
    "TransportOptions",
    "check_plain",
    "option",
    "parse_destination_options",
    "parse_url",
    "prefetch_for",
    "redact",
    "shows_no_secret",
    "store_conversion",
]
