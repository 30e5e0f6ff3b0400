"""SASL mechanisms (RFC 4422): each has a first response, answers to challenges, and a check at the end.

The cryptography of SCRAM (RFC 5802, RFC 7677) is the library ``scramp``, loaded by the first login that uses it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Final

from pyjmsack.errors import JMSSecurityException

__all__ = ["LEAST_ITERATIONS", "MOST_ITERATIONS", "Mechanism", "Scram", "create", "mechanisms"]

LEAST_ITERATIONS: Final = 4096
"""RFC 5802 5.1; with fewer, whoever poses as the broker finds the password from our answer by trying."""
MOST_ITERATIONS: Final = 1_000_000
"""The limit is about a second of computing, during which the loop does nothing else. Without a limit a hostile peer
could ask for hours."""
_LONGEST: Final = 200
"""Characters of a reason that come from the broker."""
_MALFORMED: Final = (ValueError, LookupError, TypeError)
"""What scramp raises, beside its own error, when a message is not what it takes apart."""
_SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")


class Mechanism:
    """One login. As it is, ANONYMOUS (RFC 4505) and, over a client certificate, EXTERNAL (RFC 4422 appendix A).

    Its ``repr`` shows no secret, as it shows nothing but the class.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self) -> bytes | None:
        """Return the initial response; ``None`` where the broker speaks first."""
        return b""

    def respond(self, challenge: bytes) -> bytes:
        """Answer a challenge.

        Raises:
            JMSSecurityException: the challenge is malformed, or shows that the broker is not what it should be.
        """
        raise JMSSecurityException(f"unexpected SASL challenge from the broker, as {self.name} has none")

    def succeed(self, data: bytes) -> None:
        """The broker says that the login succeeded; ``data`` is what came with that.

        Raises:
            JMSSecurityException: the broker did not prove what the mechanism asks it to prove.
        """


class Plain(Mechanism):
    """PLAIN (RFC 4616)."""

    def __init__(self, name: str, username: str, password: str) -> None:
        super().__init__(name)
        self._username, self._password = username, password

    def start(self) -> bytes | None:
        """Return user name and password as they are."""
        return b"\0" + self._username.encode() + b"\0" + self._password.encode()


class XOAuth2(Plain):
    """XOAUTH2: the password is an OAuth 2.0 access token."""

    def start(self) -> bytes:
        """Return user name and token."""
        return f"user={self._username}\x01auth=Bearer {self._password}\x01\x01".encode()

    def respond(self, challenge: bytes) -> bytes:
        """Answer the details of a refusal, so that the outcome follows."""
        return b""


class CramMd5(Plain):
    """CRAM-MD5 (RFC 2195). It is only useful without TLS, where it is better than PLAIN."""

    def start(self) -> None:
        """Send no first response, because the broker sends the first message."""

    def respond(self, challenge: bytes) -> bytes:
        """Return user name and digest."""
        digest = hmac.new(self._password.encode(), challenge, "md5").hexdigest()
        return f"{self._username} {digest}".encode()


class Scram(Mechanism):
    """SCRAM without channel binding; the broker has to prove that it knows the password as well.

    Args:
        nonce: for the examples of the RFCs; random otherwise.

    Raises:
        JMSSecurityException: the name or the password holds what SASLprep (RFC 4013) does not allow.
    """

    def __init__(self, name: str, username: str, password: str, nonce: str | None = None) -> None:
        from scramp import ScramClient, ScramException  # type: ignore[import-untyped]  # it has no type hints
        from scramp.core import saslprep  # type: ignore[import-untyped]  # as above

        super().__init__(name)
        self._error = ScramException
        self._step = 0
        try:
            if not username:
                raise ScramException("the user name is empty")
            for text in (username, password):  # scramp before 1.5, the last for Python 3.10, looks when it is too late
                saslprep(text)
            self._client = ScramClient([name], username, password, c_nonce=nonce)
        except ScramException as error:
            raise self._failure("user name or password", error) from None  # the cause's frames hold the password

    def start(self) -> bytes:
        """Return the client's first message."""
        first: str = self._client.get_client_first()
        return first.encode()

    def respond(self, challenge: bytes) -> bytes:
        """Answer the server's first message with the proof, its final one with nothing."""
        self._step += 1
        if self._step == 1:
            return self._prove(challenge)
        if self._step == 2:
            self._verify(challenge)
            return b""
        raise JMSSecurityException(f"unexpected SASL challenge from the broker, as {self.name} has two")

    def succeed(self, data: bytes) -> None:
        """Check the server's signature if it comes with the outcome, else that it came before."""
        if self._step == 1 and data:
            self._step = 2
            self._verify(data)
        elif self._step != 2:
            raise JMSSecurityException(
                f"the broker accepted the login without the proof that {self.name} asks of it: it may be an impostor"
            )

    def _prove(self, challenge: bytes) -> bytes:
        try:
            self._client.set_server_first(challenge.decode())
            iterations = int(self._client.iterations)
            if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
                raise JMSSecurityException(
                    f"{self.name}: the broker asks for {iterations} iterations, expected {LEAST_ITERATIONS} to"
                    f" {MOST_ITERATIONS}"
                )
            final: str = self._client.get_client_final()
        except (self._error, *_MALFORMED) as error:
            raise self._failure("the broker's challenge", error) from None
        return final.encode()

    def _verify(self, final: bytes) -> None:
        try:
            self._client.set_server_final(final.decode())
        except (self._error, *_MALFORMED) as error:
            raise self._failure("the broker's proof", error) from None

    def _failure(self, what: str, error: Exception) -> JMSSecurityException:
        reason = "it is malformed" if isinstance(error, _MALFORMED) else str(error)
        reason = "it is not UTF-8" if isinstance(error, UnicodeError) else reason[:_LONGEST]
        return JMSSecurityException(f"{self.name}: {what}: {reason}")


def mechanisms(username: str | None, password: str | None, *, external: bool) -> Iterator[str]:
    """Yield the names of the mechanisms that these credentials allow, the strongest first.

    A user without a password gets PLAIN alone, with an empty one: the others make no sense without a secret.
    """
    if external:
        yield "EXTERNAL"
    if username is None:
        yield "ANONYMOUS"
        return
    if password:
        yield from _SCRAM
        yield "CRAM-MD5"
    yield "PLAIN"
    if password:
        yield "XOAUTH2"


def create(name: str, username: str | None, password: str | None) -> Mechanism:
    """Return the mechanism of that name, which is one of :func:`mechanisms`.

    Raises:
        JMSSecurityException: it cannot carry this name or password.
    """
    if name in ("EXTERNAL", "ANONYMOUS") or username is None:
        return Mechanism(name)
    kinds: dict[str, type[Plain]] = {"PLAIN": Plain, "XOAUTH2": XOAuth2, "CRAM-MD5": CramMd5}
    return (kinds.get(name) or Scram)(name, username, password or "")
