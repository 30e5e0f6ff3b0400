"""Restricts the TLS versions and cipher suites of an SSL context. The options of the URL use the names of Java."""

from __future__ import annotations

import difflib
import re
import ssl
from collections.abc import Sequence
from typing import Final

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.uri import TransportOptions

__all__ = ["restrict_suites", "restrict_versions"]

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""The TLS versions that are safe, from the older one to the newer one. No option makes a context use another
version."""

_SLOW: Final = "DHE-"
"""The beginning of OpenSSL's names of the suites in which the broker chooses the size of a prime number. With 10,000
bits one handshake would hold up all connections of the loop for a second."""


def restrict_versions(context: ssl.SSLContext, transport: TransportOptions) -> None:
    """Apply the options ``contextProtocol``, ``enabledProtocols`` and ``disabledProtocols`` to an SSL context.

    Raises:
        InvalidURLException: the options leave no TLS version.
    """
    highest = transport.context_protocol
    usable = [
        version
        for name, version in _VERSIONS.items()
        if (not transport.enabled_protocols or name in transport.enabled_protocols)
        and name not in transport.disabled_protocols
        and (highest not in _VERSIONS or version <= _VERSIONS[highest])
    ]
    if not usable:
        raise InvalidURLException(
            "transport.enabledProtocols, disabledProtocols and contextProtocol leave no TLS version; allow"
            f" {' or '.join(_VERSIONS)}"
        )
    context.minimum_version, context.maximum_version = usable[0], usable[-1]


def restrict_suites(context: ssl.SSLContext, transport: TransportOptions) -> None:
    """Apply the options ``enabledCipherSuites`` and ``disabledCipherSuites`` to an SSL context. The names are those of
    Java or of OpenSSL. Suites of TLS 1.2 with a finite-field Diffie-Hellman exchange (DHE) are used only if
    ``enabledCipherSuites`` names them.

    Python cannot choose among the suites of TLS 1.3. Therefore the context uses all of these suites, or does not use
    TLS 1.3.

    Raises:
        InvalidURLException: a name is unknown, or the options leave no suite.
        UnsupportedFeatureException: the options leave some suites of TLS 1.3, but not all.
    """
    known = {suite["name"]: suite["protocol"] == "TLSv1.3" for suite in context.get_ciphers()}
    disabled = _named("transport.disabledCipherSuites", transport.disabled_cipher_suites, [*known])
    enabled = _named("transport.enabledCipherSuites", transport.enabled_cipher_suites, [*known])
    usual = [name for name in known if not name.startswith(_SLOW)]
    wanted = [name for name in (enabled or usual) if name not in disabled]
    old = [name for name in wanted if not known[name]]
    new = [name for name in wanted if known[name]]
    if new and len(new) < sum(known.values()) and context.maximum_version == ssl.TLSVersion.TLSv1_3:
        raise UnsupportedFeatureException(
            "transport.enabledCipherSuites and disabledCipherSuites: Python cannot choose among the suites of TLS 1.3;"
            f" name all of them ({', '.join(name for name in known if known[name])}) or none of them, or pass an"
            " ssl_context"
        )
    if old:
        context.set_ciphers(":".join(old))
    _fit_versions(context, old=bool(old), new=bool(new))


def _fit_versions(context: ssl.SSLContext, *, old: bool, new: bool) -> None:
    """Exclude the TLS versions for which no suite is left.

    Args:
        old: whether a suite is left for TLS 1.2.
        new: whether a suite is left for TLS 1.3.

    Raises:
        InvalidURLException: no version is left.
    """
    if not new:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if not old:
        context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_3)
    if context.minimum_version > context.maximum_version or not (old or new):
        raise InvalidURLException(
            "transport.enabledCipherSuites and disabledCipherSuites leave no suite for the allowed TLS versions"
        )


def _named(option: str, names: Sequence[str], known: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        suite = name if name in known else _of_openssl(name)
        if suite not in known:
            near = difflib.get_close_matches(suite, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise InvalidURLException(
                f"{option}: this OpenSSL does not have the suite {name}, or the suite is unsafe{hint}"
            )
        found.append(suite)
    return found


def _of_openssl(name: str) -> str:
    """Return the name that OpenSSL has for a cipher suite with this Java name. Suites of TLS 1.3 need no such
    translation.

    For example, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 becomes ECDHE-RSA-AES256-GCM-SHA384.
    """
    name = name.removeprefix("TLS_").removeprefix("RSA_WITH_").replace("_WITH_", "_")
    name = (
        re.sub(r"(AES|CAMELLIA)_(\d+)", r"\1\2", name)
        .replace("_CBC_", "_")
        .replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    )
    return name.replace("_", "-")
