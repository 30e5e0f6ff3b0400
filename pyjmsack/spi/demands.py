"""Whether a broker can honour what a session or consumer asks for: when it is made, and after a failover (S119)."""

from __future__ import annotations

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.spi.features import FEATURES, Level
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, SessionInfo

__all__ = ["check_consumer", "check_session", "require"]


def require(metadata: ConnectionMetadata, feature: str) -> None:
    """Raise if this protocol and broker cannot honour a feature, before anything is asked of the broker (S119).

    Raises:
        UnsupportedFeatureException: the table of features says so, and why.
    """
    support = metadata.capabilities.support(feature)
    if support.level is Level.REFUSED:
        raise UnsupportedFeatureException(f"{FEATURES[feature]}: not here; {support.note}")


def check_consumer(metadata: ConnectionMetadata, info: ConsumerInfo) -> None:
    """Raise if a consumer asks for what this protocol and broker cannot honour (S119, S144, S147).

    Raises:
        UnsupportedFeatureException: as of :func:`require`.
    """
    subscription = info.subscription
    asked = {
        "browser": info.browser,
        "no-local": info.no_local,
        "durable-subscription": subscription is not None and subscription.durable,
        "shared-subscription": subscription is not None and subscription.shared,
        "exclusive-consumer": info.exclusive,
        "consumer-priority": info.priority is not None,
        "retroactive-consumer": info.retroactive,
    }
    for feature, wanted in asked.items():
        if wanted:
            require(metadata, feature)


def check_session(metadata: ConnectionMetadata, info: SessionInfo, *, strict: bool) -> None:
    """Raise if a session would be transacted, this broker can keep that promise only in a weaker way, and the URL says
    ``strict=true`` (S88).

    Raises:
        UnsupportedFeatureException: so it is.
    """
    guarantee = metadata.transaction_guarantee
    if strict and info.transacted and guarantee != "atomic":
        raise UnsupportedFeatureException(
            f"strict=true: a transaction of this protocol and broker is {guarantee}, not atomic (S88)"
        )
