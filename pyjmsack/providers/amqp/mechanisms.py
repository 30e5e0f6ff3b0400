"""SASL mechanisms, which are ways to log in (RFC 4422).

Each mechanism makes a first response, answers the challenges of the broker, and checks the end of the login. The
library ``scramp`` does the cryptography of SCRAM (RFC 5802, RFC 7677). This library is imported at the first login by
SCRAM.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import ClassVar, Final

from pyjmsack.errors import JMSSecurityException

__all__ = ["LEAST_ITERATIONS", "MOST_ITERATIONS", "Mechanism", "Scram", "create", "mechanisms"]

LEAST_ITERATIONS: Final = 4096
"""The smallest number of iterations that a broker may ask for (RFC 5802 5.1). With fewer iterations, an impostor could
guess the password from our answer by trial and error."""
MOST_ITERATIONS: Final = 1_000_000
"""The largest number of iterations that a broker may ask for. This number takes about a second of computing. Without a
limit, a hostile peer could ask for hours of computing."""
_LONGEST: Final = 200
"""An error shows at most this many characters of the reason why a login failed."""
_MALFORMED: Final = (ValueError, LookupError, TypeError)
"""The errors that scramp raises, besides its own, if a message of the broker is malformed."""
_SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")


class Mechanism:
    """One login by a SASL mechanism. The subclasses are the mechanisms with a password.

    This class itself is for ANONYMOUS (RFC 4505) and, with a client certificate, for EXTERNAL (RFC 4422 appendix A).
    Its ``repr`` shows no secret, because it shows nothing except the class.
    """

    challenges: ClassVar[int] = 0
    """The number of challenges that one login may have. There is a limit, because a broker could send challenges
    without end."""
    slow: ClassVar[bool] = False
    """Whether :meth:`respond` may take a second, so that another thread than that of the loop must call it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._challenged = 0
        """The number of challenges that have come so far."""

    def start(self) -> bytes | None:
        """Return the first response, or ``None`` if the broker sends the first message."""
        return b""

    def respond(self, challenge: bytes) -> bytes:
        """Answer a challenge.

        Raises:
            JMSSecurityException: the challenge is malformed, is one more than allowed, or shows that the broker is an
                impostor.
        """
        if self._challenged == self.challenges:
            number = ("no challenge", "one challenge", "two challenges")[self.challenges]
            raise JMSSecurityException(
                f"the broker sent an unexpected SASL challenge: a login with {self.name} has {number}"
            )
        self._challenged += 1
        return self._answer(challenge)

    def _answer(self, challenge: bytes) -> bytes:
        """Answer a challenge. This method is called at most :attr:`challenges` times."""
        raise NotImplementedError

    def succeed(self, data: bytes) -> None:
        """Check the end of a login that the broker accepted. ``data`` is the content of the last message of the broker.

        Raises:
            JMSSecurityException: the mechanism demands a proof from the broker, and the broker did not give it.
        """


class Plain(Mechanism):
    """PLAIN: the password is sent as it is (RFC 4616)."""

    def __init__(self, name: str, username: str, password: str) -> None:
        super().__init__(name)
        self._username, self._password = username, password

    def start(self) -> bytes | None:
        """Return the user name and the password as they are."""
        return b"\0" + self._username.encode() + b"\0" + self._password.encode()


class XOAuth2(Plain):
    """XOAUTH2: the password is an OAuth 2.0 access token."""

    challenges = 1

    def start(self) -> bytes:
        """Return the user name and the token."""
        return f"user={self._username}\x01auth=Bearer {self._password}\x01\x01".encode()

    def _answer(self, challenge: bytes) -> bytes:
        """Answer a challenge, which contains the details of a refusal, with an empty response. The broker sends the
        outcome only after this response."""
        return b""


class CramMd5(Plain):
    """CRAM-MD5 (RFC 2195). This mechanism is useful only without TLS. Without TLS it is better than PLAIN, because the
    password itself is not sent.
    """

    challenges = 1

    def start(self) -> None:
        """Send no first response, because the broker sends the first message."""

    def _answer(self, challenge: bytes) -> bytes:
        """Return the user name, and a digest of the challenge made with the password."""
        digest = hmac.new(self._password.encode(), challenge, "md5").hexdigest()
        return f"{self._username} {digest}".encode()


class Scram(Mechanism):
    """SCRAM without channel binding. The broker has to prove that it knows the password, too.

    Args:
        nonce: the text that makes each login of the client different. ``None`` means a random text. Tests give another
            text to check the examples of the RFCs.

    Raises:
        JMSSecurityException: the name or the password contains a character that SASLprep (RFC 4013) does not allow.
    """

    challenges = 2
    slow = True

    def __init__(self, name: str, username: str, password: str, nonce: str | None = None) -> None:
        from scramp import ScramClient, ScramException  # type: ignore[import-untyped]  # scramp has no type hints
        from scramp.core import saslprep  # type: ignore[import-untyped]  # scramp has no type hints

        super().__init__(name)
        self._error = ScramException
        try:
            if not username:
                raise ScramException("the user name is empty")
            for text in (username, password):  # scramp before 1.5 checks too late, and newer ones need Python 3.11
                saslprep(text)
            self._client = ScramClient([name], username, password, c_nonce=nonce)
        except ScramException as error:
            raise self._failure("user name or password", error) from None  # the cause's frames hold the password

    def start(self) -> bytes:
        """Return the client's first message."""
        first: str = self._client.get_client_first()
        return first.encode()

    def _answer(self, challenge: bytes) -> bytes:
        """Answer the first message of the broker with our proof, and the final message of the broker with an empty
        response."""
        if self._challenged == 1:
            return self._prove(challenge)
        self._verify(challenge)
        return b""

    def succeed(self, data: bytes) -> None:
        """Check the signature of the broker if it comes with the outcome. If it does not, check that the signature came
        before."""
        if self._challenged == 1 and data:
            self._challenged = 2
            self._verify(data)
        elif self._challenged != 2:
            raise JMSSecurityException(
                f"the broker accepted the login without the proof that {self.name} requires; it may be an impostor"
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

    A user without a password can use only PLAIN, with an empty password, because the other mechanisms need a secret.
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
    """Return the mechanism of this name, which is one of the names that :func:`mechanisms` yields.

    Raises:
        JMSSecurityException: the mechanism cannot carry this user name or password.
    """
    if name in ("EXTERNAL", "ANONYMOUS") or username is None:
        return Mechanism(name)
    kinds: dict[str, type[Plain]] = {"PLAIN": Plain, "XOAUTH2": XOAuth2, "CRAM-MD5": CramMd5}
    return (kinds.get(name) or Scram)(name, username, password or "")
