"""A real Spring service and an :class:`~pyjmsack.App` send each other typed JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from agent import JavaMissingError, SpringService
from conftest import Site

from pyjmsack import App, JsonConverter

pytestmark = pytest.mark.timeout(300)  # Maven builds the service first


@dataclass
class Email:
    """What both ends exchange."""

    to: str
    body: str
    extra_notes: dict[str, str] = field(default_factory=dict)
    """``extraNotes`` in Java."""


@pytest.fixture
def spring(artemis_site: Site) -> Iterator[Callable[[str, str], SpringService]]:
    """``spring(form, queue)``: a service that answers what comes to the queue, in text or in bytes messages."""
    with ExitStack() as opened:

        def started(form: str, queue: str) -> SpringService:
            try:
                service = SpringService(artemis_site.java_urls["qpid"], form, queue)
            except JavaMissingError as missing:
                pytest.skip(f"no Java end: {missing}")
            opened.callback(service.close)
            return service

        yield started


@pytest.mark.parametrize(("form", "protocol"), [("TEXT", "amqp"), ("BYTES", "stomp")])
def test_typed_json_goes_to_a_spring_service_and_comes_back(
    artemis_site: Site, spring: Callable[[str, str], SpringService], form: str, protocol: str, queue_name: str
) -> None:
    """Requests in both directions. The property ``_type`` names the class, as in Spring's converter of JSON.

    Fields have the names of Jackson, and the keys of a mapping their own.
    """
    service = spring(form, f"{queue_name}-spring")
    asked: list[Email] = []
    url = artemis_site.stomp_url if protocol == "stomp" else artemis_site.python_urls["qpid"]
    app = App(url, converter=JsonConverter("_type", {"hello.Email": Email}, camel_case=True))

    @app.listener(f"{queue_name}-python")
    def answer(email: Email) -> Email:
        asked.append(email)
        return Email("python", f"{email.to} wrote {email.body}")

    with app:
        notes = {"sent_at": "noon", "sentBy": "ann"}
        reply = app.sender.request(f"{queue_name}-spring", Email("python", "hällo", notes), timeout=60)
        assert reply == Email("spring", "python wrote hällo", notes)
        assert service.ask(f"{queue_name}-python") == "python wrote java wrote grüß"
    assert asked == [Email("java", "grüß")]
