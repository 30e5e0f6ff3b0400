"""What ``@app.listener`` checks, and one call of a listener, without a broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from pyjmsack import (
    App,
    Header,
    InvalidDestinationException,
    InvalidURLException,
    Message,
    MessageFormatException,
    Queue,
    Retry,
    Session,
    TextMessage,
    Topic,
    aio,
)
from pyjmsack.backoff import Backoff
from pyjmsack.types import Outcome

URL = "amqp://localhost:1"


@dataclass
class Email:
    to: str


def nothing(body: Any) -> None:
    """Takes anything."""


async def nothing_async(body: Any) -> None:
    """Takes anything."""


def test_one_call_tries_a_listener_with_its_types_headers_and_sends() -> None:
    app = App(URL)

    @app.listener("mailbox")
    def receive(
        email: Email, message: Message, session: Session, region: Annotated[str, Header("region", default="EU")]
    ) -> str:
        app.sender.send("audit", {"to": email.to})
        return f"{email.to} {region} {type(message).__name__}"

    sent: list[tuple[str, Message]] = []
    assert app.listeners["mailbox"].call(Email("ann"), properties={"region": "US"}, sent=sent) == "ann US TextMessage"
    assert [(name, message.body) for name, message in sent] == [("audit", '{"to": "ann"}')]
    assert app.listeners["mailbox"].call({"to": "bob"}) == "bob EU TextMessage"
    with pytest.raises(MessageFormatException, match="Email needs 'to'"):
        app.listeners["mailbox"].call({})
    assert receive.__name__ == "receive"


def test_one_call_is_awaited_in_asyncio() -> None:
    app = aio.App(URL)

    @app.listener("mailbox")
    async def receive(email: Email) -> str:
        await asyncio.gather(*(app.sender.send("audit", email.to) for _ in range(3)))
        return email.to

    sent: list[tuple[str, Message]] = []
    assert asyncio.run(app.listeners["mailbox"].call(Email("ann"), sent=sent)) == "ann"
    assert [name for name, _ in sent] == ["audit"] * 3


def test_headers_are_properties_and_jms_headers_of_their_type() -> None:
    app = App(URL)

    @app.listener("q")
    def listener(n: Annotated[int, Header("n")], kind: Annotated[str | None, Header("JMSType")]) -> tuple[int, Any]:
        return n, kind

    message = TextMessage("x")
    message.type = "letter"
    assert app.listeners["q"].call(message, properties={"n": 3}) == (3, "letter")
    with pytest.raises(MessageFormatException, match="the header 'n': expected int, not str"):
        app.listeners["q"].call("x", properties={"n": "3"})
    with pytest.raises(MessageFormatException, match="no header 'n'"):
        app.listeners["q"].call("x")


def test_a_delayed_message_tells_its_time_by_a_header() -> None:
    app = App(URL)

    @app.listener("q")
    def listener(due: Annotated[Any, Header("JMSDeliveryTime")]) -> Any:
        return due

    message = TextMessage("x")
    message._delivery_time = 86_400_000
    assert app.listeners["q"].call(message) == message.delivery_time is not None


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"concurrency": "10-3"}, "concurrency is '10-3'"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": 10_000}, "concurrency is 10000"),
        ({"mode": "auto"}, "mode is 'auto'; expected one of transacted, individual, no-ack"),
        ({"topic": True, "concurrency": 2}, "each worker would get each message"),
        ({"subscription": "s"}, "needs topic=True"),
        ({"topic": True, "shared": True}, "needs the name of a subscription"),
        ({"topic": True, "subscription": "s"}, "needs a client id; give client_id=... to the listener or to the App"),
        ({"topic": True, "subscription": "s", "durable": False}, "needs shared=True or durable=True"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_when_the_program_starts(how: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        App(URL).listener("q", **how)(nothing)


def test_functions_that_cannot_be_listeners_are_refused_when_the_program_starts() -> None:
    app = App(URL)
    with pytest.raises(TypeError, match=r"a coroutine function needs pyjmsack.aio.App"):
        app.listener("q")(nothing_async)
    with pytest.raises(TypeError, match="a, b would all get the body"):
        app.listener("q")(lambda a, b: None)
    with pytest.raises(TypeError, match="cannot be given by its name"):
        app.listener("q")(lambda *a: None)
    with pytest.raises(TypeError, match=r"takes neither \(error, message\) nor \(error\)"):
        app.listener("q", on_error=lambda a, b, c: None)(nothing)
    assert not app.listeners


def test_a_destination_may_have_the_scheme_that_java_writes() -> None:
    app = App(URL)
    app.listener("queue://a")(nothing)
    app.listener("topic://b")(nothing)
    assert {name: each.destination for name, each in app.listeners.items()} == {"a": Queue("a"), "b": Topic("b")}
    with pytest.raises(InvalidDestinationException, match="names a queue"):
        app.listener("queue://c", topic=True)(nothing)


def test_two_listeners_of_one_queue_need_two_names() -> None:
    app = App(URL)
    app.listener("q", selector="a = 1")(nothing)
    with pytest.raises(ValueError, match="give the new listener another name="):
        app.listener("q", selector="a = 2")(nothing)
    app.listener("q", selector="a = 2", name="second")(nothing)
    assert [*app.listeners] == ["q", "second"]


def test_only_one_listener_has_an_unshared_durable_subscription() -> None:
    """The client id belongs to one connection (S122, S141)."""
    app = App(URL, client_id="me")
    app.listener("t", topic=True, subscription="a")(nothing)
    with pytest.raises(ValueError, match="only one listener"):
        app.listener("u", topic=True, subscription="b")(nothing)


def test_a_wrong_url_and_a_client_id_in_it_are_refused_at_once() -> None:
    with pytest.raises(InvalidURLException):
        App("amqp://localhost?jms.nonsense=1")
    with pytest.raises(ValueError, match="give client_id="):
        App("amqp://localhost?jms.clientID=x")


@pytest.mark.parametrize(
    "how",
    [{"limit": -1}, {"delay": -1}, {"backoff": 0.5}, {"then": "explode"}, {"longest": 1e9}, {"delay": float("nan")}],
)
def test_a_retry_is_checked(how: Any) -> None:
    with pytest.raises(ValueError, match="Retry: "):
        Retry(**how)


def test_a_retry_of_the_url_counts_unless_the_listener_has_its_own() -> None:
    app = App(f"{URL}?jms.redeliveryPolicy.maxRedeliveries=3&jms.prefetchPolicy.all=7")
    app.listener("a")(nothing)
    app.listener("b", retry=Retry(1, then="drop"))(nothing)
    assert app.options_of(app.listeners["a"]) == {}
    chosen = app.options_of(app.listeners["b"])
    assert (chosen["jms.redeliveryPolicy.maxRedeliveries"], chosen["jms.redeliveryPolicy.outcome"]) == (1, "ACCEPTED")


@pytest.mark.parametrize("in_url", [True, False])
def test_a_listener_with_its_own_retry_gets_no_policy_of_a_single_destination(in_url: bool) -> None:
    """The policy of ``[orders.>]`` overrode the listener's retry, so messages were dropped that no function had."""
    special = "jms.redeliveryPolicy[orders.>].maxRedeliveries"
    app = App(f"{URL}?{special}=0") if in_url else App(URL, options={special: 0})
    app.listener("orders.a")(nothing)
    app.listener("orders.b", retry=Retry(5, then="drop"))(nothing)
    a, b = (
        app._container(each).link._factory._url.connection.redelivery_policy_for(each.destination)
        for each in app.listeners.values()
    )
    assert a.max_redeliveries == 0
    assert (b.max_redeliveries, b.outcome) == (5, Outcome.ACCEPTED)


def test_waits_between_attempts_grow_to_30_seconds_and_are_short_again_after_a_calm_time() -> None:
    now = 0.0
    backoff = Backoff(lambda: now)
    waits = [backoff.after_failure() for _ in range(7)]
    assert all(0.75 * full <= wait <= full for wait, full in zip(waits, (1, 2, 4, 8, 16, 30, 30), strict=True))
    now = 1000
    assert backoff.after_failure() <= 1


def test_an_app_tells_no_password() -> None:
    app = App("amqp://localhost:1?jms.username=u&jms.password=secret")
    app.listener("q")(nothing)
    assert "secret" not in repr(app) + repr(app.describe()) + repr(app.health())
