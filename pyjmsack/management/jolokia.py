"""Asks Jolokia, which offers the beans (objects for management) of a Java process over HTTP. The web console of
ActiveMQ Classic contains Jolokia.
"""

from __future__ import annotations

import base64
import io
import json
import socket
import time
import urllib.error
import urllib.request
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from pyjmsack import (
    ConnectionLostException,
    InvalidSelectorException,
    InvalidURLException,
    JMSException,
    JMSSecurityException,
    RequestTimedOutException,
)
from pyjmsack.json_text import read_json
from pyjmsack.management.model import ManagementDeniedError, Request, shown

__all__ = ["Jolokia"]

_EXPECTED = "Jolokia's URL: expected http://HOST:PORT/api/jolokia or https://..."
_UNQUOTED = (
    "Jolokia's URL: an @ stands after the host; in a name or a password write / as %2F, ? as %3F, # as %23 and @ as %40"
)
_LARGEST = 64 << 20
"""The largest number of bytes in one answer."""
_MOST_VALUES = 3_000_000
"""The largest number of values in one answer. Two hundred thousand queues fit."""
_LONGEST_HEAD = 64 << 10
"""The largest number of bytes in the head of one answer."""

_PIECE = 1 << 16


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, because otherwise the login would be sent to the new address too."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Return ``None``, so that the redirection counts as an error."""


class _Until(io.RawIOBase):
    """Reads from a socket, and fails after a moment in time. The time-out of the socket alone is not enough, because it
    begins anew with each read.

    The head of an answer has a limit, because the parser for header fields in the standard library takes seconds and
    hundreds of megabytes for some heads.
    """

    def __init__(self, raw: io.RawIOBase, stream: socket.socket) -> None:
        super().__init__()
        self._raw = raw
        self._stream = stream
        self._end = time.monotonic() + (stream.gettimeout() or 0.0)
        self._room: int | None = _LONGEST_HEAD
        """How many bytes the head may still have. ``None`` after the head."""

    def head_is_over(self) -> None:
        """Read any number of bytes from now on."""
        self._room = None

    def readable(self) -> bool:
        """Return True, because this file is open for reading."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read some bytes into ``buffer``, and return their number.

        Raises:
            TimeoutError: the time is over.
            HTTPException: the head of the answer is too long.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._stream.settimeout(left)
        if self._room is None:
            return self._raw.readinto(buffer)
        if self._room <= 0:
            raise HTTPException(f"the head of its answer has more than {_LONGEST_HEAD >> 10} KiB")
        count = self._raw.readinto(buffer)
        self._room -= count or 0
        return count

    def close(self) -> None:
        """Close the file that this object reads."""
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer that must be complete within the time-out of the connection."""

    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self._until = _Until(self.fp.detach(), sock)
        self.fp = io.BufferedReader(self._until)

    def begin(self) -> None:
        """Read the head of the answer."""
        super().begin()
        self._until.head_is_over()


class _Plain(HTTPConnection):
    response_class = _TimedResponse


class _Secure(HTTPSConnection):
    response_class = _TimedResponse


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open a connection that reads each answer within the time-out."""
        return self.do_open(_Plain, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open a connection that reads each answer within the time-out."""
        return self.do_open(_Secure, req)


_OPENER = urllib.request.build_opener(_NoRedirects, _Http, _Https)


class Jolokia:
    """Asks one Jolokia agent. A request is one HTTP POST.

    Args:
        url: such as ``http://admin:secret@broker:8161/api/jolokia``.
        timeout: seconds for one request.

    Raises:
        InvalidURLException: ``url`` is not an ``http`` or ``https`` URL.
    """

    def __init__(self, url: str, timeout: float) -> None:
        parts = _split(url)
        host, port = parts.hostname, parts.port
        if host is None or parts.scheme not in ("http", "https"):
            raise InvalidURLException(_EXPECTED)
        address = f"[{host}]" if ":" in host else host
        place = f"{address}:{port}" if port else address
        self.url = urlunsplit((parts.scheme, place, parts.path or "/api/jolokia", "", ""))
        """The URL without the login."""
        self._timeout = timeout
        # the console of ActiveMQ answers only requests whose Origin is localhost
        self._headers = {"Content-Type": "application/json", "Origin": "http://localhost"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"

    def __repr__(self) -> str:
        return f"<Jolokia {self.url}>"

    def ask(self, request: Request) -> Any:
        """Send a request and return the value in the answer. A pattern that fits no bean gives an empty mapping.

        Args:
            request: the bean, and its attributes or its operation.

        Raises:
            ManagementDeniedError: the user may not do this.
            JMSSecurityException: the login is wrong.
            RequestTimedOutException: no answer came in time.
            ConnectionLostException: nobody answers at the URL.
            JMSException: the answer is an error, or is not from Jolokia.
        """
        answer = self._post(json.dumps(_document(request)).encode())
        try:
            document = read_json(answer, _MOST_VALUES)
        except (RecursionError, ValueError) as error:
            raise JMSException(f"the answer of {self.url} cannot be read as JSON: {shown(str(error))}") from error
        if not isinstance(document, dict) or "status" not in document:
            raise JMSException(
                f"{self.url} is not the URL of a Jolokia agent, because its answer has no status; "
                "expected a URL such as http://HOST:8161/api/jolokia"
            )
        if document["status"] == 200:
            return document.get("value")
        reason = str(document.get("error", "no reason given"))
        text = shown(reason)
        if document["status"] == 404 and request.operation is None and "*" in request.resource:
            return {}
        if document["status"] == 403:
            raise ManagementDeniedError(f"Jolokia at {self.url} forbids this: {text}")
        if "InvalidSelectorException" in reason:
            raise InvalidSelectorException(f"the broker cannot read the selector: {text}")
        raise JMSException(f"Jolokia at {self.url}: {text}")

    def _post(self, body: bytes) -> bytes:
        question = urllib.request.Request(self.url, body, self._headers)  # noqa: S310 - http or https, see above
        try:
            with _OPENER.open(question, timeout=self._timeout) as answer:
                return self._read(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error.code) from None
        except TimeoutError as error:
            raise RequestTimedOutException(f"Jolokia at {self.url} did not answer in {self._timeout:g} s") from error
        except (HTTPException, OSError, UnicodeError) as error:  # a host or a path may have characters of no URL
            reason = getattr(error, "reason", error)
            raise ConnectionLostException(f"cannot connect to Jolokia at {self.url}: {reason}") from error

    def _read(self, answer: Any) -> bytes:
        """Return the bytes of an answer.

        Raises:
            JMSException: the answer has more than 64 MB.
            TimeoutError: the time is over.
        """
        data = bytearray()
        while piece := answer.read1(_PIECE):
            data += piece
            if len(data) > _LARGEST:
                raise JMSException(f"Jolokia at {self.url} answered with more than {_LARGEST >> 20} MB")
        return bytes(data)

    def _refused(self, code: int) -> JMSException:
        if code in (401, 403):
            return JMSSecurityException(
                f"Jolokia at {self.url} refuses this login (HTTP {code}): the user needs a role that may use the web"
                " console (admin by default), and the URL must contain the name and the password, as in"
                " http://NAME:PASSWORD@HOST:8161/..."
            )
        return JMSException(f"{self.url} answered HTTP {code}; expected the URL of Jolokia, such as .../api/jolokia")


def _split(url: str) -> SplitResult:
    """Split a URL into its parts, after a check of its form.

    Raises:
        InvalidURLException: the URL has a wrong form. The text does not show the URL, because it may hold a password.
    """
    parts: SplitResult | None
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.hostname  # to read these attributes raises an error if they are wrong
    except ValueError:
        parts = None
    if parts is None:  # raised here, because the error of Python may show a part of the password
        raise InvalidURLException(_EXPECTED)
    if "@" in parts.path + parts.query + parts.fragment:  # the part before it is a password, which nobody may see
        raise InvalidURLException(_UNQUOTED)
    return parts


def _document(request: Request) -> dict[str, Any]:
    if request.operation is not None:
        call = {"operation": request.operation, "arguments": list(request.arguments)}
        return {"type": "exec", "mbean": request.resource, **call}
    return {"type": "read", "mbean": request.resource, "attribute": list(request.attributes)}
