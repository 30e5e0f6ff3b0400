"""Options after a destination's name: ``orders?consumer.prefetchSize=10``."""

from __future__ import annotations

from pyjmsack.destination import Destination
from pyjmsack.errors import InvalidDestinationException
from pyjmsack.uri.ignored import IGNORED_OF_DESTINATIONS, warn_meaningless
from pyjmsack.uri.model import DestinationOptions
from pyjmsack.uri.table import DESTINATION_OPTIONS, build
from pyjmsack.uri.values import did_you_mean, parse_values

__all__ = ["parse_destination_options"]


def parse_destination_options(destination: Destination) -> DestinationOptions:
    """Return the typed options of a destination; they win over those of the factory (S49).

    Java ignores what does not start with ``consumer.`` or ``producer.`` (so ``customer.prefetchSize`` does nothing
    there); here it is an error.

    Raises:
        InvalidDestinationException: unknown option, or a value that is not allowed, such as a negative prefetch (S11).
    """
    given = destination.options
    unknown = [name for name in given if name not in DESTINATION_OPTIONS and name not in IGNORED_OF_DESTINATIONS]
    if unknown:
        known = (*DESTINATION_OPTIONS, *IGNORED_OF_DESTINATIONS)
        listed = ", ".join(did_you_mean(name, known) for name in unknown)
        raise InvalidDestinationException(f"destination {destination.name}: unknown option {listed}")
    for name in given:
        if name in IGNORED_OF_DESTINATIONS:
            warn_meaningless(name)
    return build(DestinationOptions, parse_values(given, DESTINATION_OPTIONS, InvalidDestinationException))
