"""Requests and answers of the managers, without any broker."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest

from pyjmsack import InvalidSelectorException, InvalidURLException, JMSException, JMSSecurityException, TextMessage
from pyjmsack.management.artemis import _ATTEMPTS, Artemis, answer_of, request_message
from pyjmsack.management.filters import core_filter
from pyjmsack.management.jolokia import Jolokia
from pyjmsack.management.model import ManagementDeniedError, Request, unknown_queue


@pytest.mark.parametrize(
    ("selector", "filtered"),
    [
        ("JMSPriority > 4", "AMQPriority > 4"),
        ("JMSTimestamp < 5 AND name = 'JMSTimestamp'", "AMQTimestamp < 5 AND name = 'JMSTimestamp'"),
        ("JMSDeliveryMode = 'PERSISTENT'", "AMQDurable = 'DURABLE'"),
        ("JMSXGroupID = 'it''s'", "JMSXGroupID = 'it''s'"),
        ("mode = 'PERSISTENT'", "mode = 'PERSISTENT'"),
    ],
)
def test_a_selector_keeps_its_meaning_in_artemis_words(selector: str, filtered: str) -> None:
    assert core_filter(selector) == filtered


def test_the_nearest_names_come_first_whatever_their_case() -> None:
    error = unknown_queue("Order", ["bills", "orders", "orders.eu", "x"])
    assert error.nearest == ("orders", "orders.eu")
    assert "'orders'" in str(error)
    assert unknown_queue("zzz", ["orders"]).nearest == ()


def test_the_nearest_name_is_found_among_many_and_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    close = difflib.get_close_matches

    def counting(word: str, names: list[str], *limits: Any) -> list[str]:
        compared.append(len(names))
        return close(word, names, *limits)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    names = [f"orders.of.customer.{number:06d}" for number in range(20_000)]
    for wanted, meant in (("invocies", "invoices"), ("orders.of.custmoer.012345", "orders.of.customer.012345")):
        assert unknown_queue(wanted, [*names, "invoices", "i" * 70_000]).nearest[0] == meant
    assert max(compared) <= 500
    assert unknown_queue("x" * 70_000, names).nearest == ()


def reply(succeeded: object, body: str) -> TextMessage:
    """Return an answer of Artemis; STOMP carries the flag as text."""
    message = TextMessage(body)
    message.properties["_AMQ_OperationSucceeded"] = succeeded
    return message


@pytest.mark.parametrize("flag", [True, "true"])
def test_an_answer_is_read_in_both_protocols(flag: object) -> None:
    assert answer_of(Request("broker", "countMessages"), reply(flag, "[3]")) == 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AMQ229020: Invalid filter: n >", InvalidSelectorException),
        ("AMQ229213: User: bob does not have permission='MANAGE'", ManagementDeniedError),
        ("AMQ229032: User: bob does not have permission='SEND'", ManagementDeniedError),
        ("AMQ229069: no operation x/0", JMSException),
    ],
)
def test_a_refusal_becomes_the_error_that_fits(text: str, kind: type[JMSException]) -> None:
    with pytest.raises(kind):
        answer_of(Request("queue.a", "countMessages"), reply(False, json.dumps([text])))


def test_a_request_names_resource_and_attribute() -> None:
    message = request_message(Request("queue.a", attributes=("MessageCount",)))
    assert dict(message.properties) == {"_AMQ_ResourceName": "queue.a", "_AMQ_Attribute": "MessageCount"}


def test_an_answer_that_is_json_within_json_is_read_whole() -> None:
    request = Request("broker", "listQueues", lists=True)
    assert answer_of(request, reply(True, json.dumps([json.dumps({"data": [1]})]))) == {"data": [1]}


def test_a_list_is_read_page_by_page_to_its_end() -> None:
    steps = Artemis().consumers(None)
    request = next(steps)
    for page in (1, 2):
        assert request.arguments[1] == page
        request = steps.send({"data": [{"queue": "a"}] * 500, "count": 1007})
    with pytest.raises(StopIteration) as end:
        steps.send({"data": [{"queue": "a"}] * 7, "count": 1007})
    assert len(end.value.value) == 1007


def test_a_page_with_more_rows_than_asked_for_is_refused() -> None:
    """docs/security.md: else the broker would choose how many rows there are."""
    steps = Artemis().consumers(None)
    next(steps)
    with pytest.raises(JMSException, match="501 rows instead of 500"):
        steps.send({"data": [{"queue": "a"}] * 501})


def test_the_pages_of_a_list_have_one_limit_for_their_texts() -> None:
    """docs/security.md: a hostile broker made the client keep 1.6 GB in 50 pages."""
    long = "x" * 4_000_000
    steps = Artemis().consumers(None)
    next(steps)
    full = {"data": [{"queue": f"{number}{long}"} for number in range(5)] + [{}] * 495}
    for _ in range(3):
        steps.send(full)
    with pytest.raises(JMSException, match="more than 67,108,864 characters"):
        steps.send(full)
    steps = Artemis().consumers("a")
    next(steps)
    for _ in range(50):  # a row that nobody asked for is not kept
        steps.send({"data": [{"queue": f"{number}{long}"} for number in range(5)] + [{"queue": "a"}] * 495})
    with pytest.raises(StopIteration) as end:
        steps.send({"data": []})
    assert [each.queue for each in end.value.value] == ["a"] * (50 * 495)


@pytest.mark.parametrize("url", ["amqp://h", "http://", "file:///etc/passwd", "http://u:p@h:bad/"])
def test_a_wrong_url_of_jolokia_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidURLException) as caught:
        Jolokia(url, 1)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("password", ["/s3cret", "12/s3cret", "12?s3cret", "12#s3cret", "s3cret/x", "@/s3cret"])
@pytest.mark.parametrize("rest", ["host:8161/api/jolokia", "host", "host:8161/api?a=b"])
def test_a_password_of_jolokia_that_is_not_quoted_is_refused_and_not_shown(password: str, rest: str) -> None:
    """The text before the first / was taken for the host, and the password for a path, which every error showed."""
    with pytest.raises(InvalidURLException) as caught:
        Jolokia(f"http://bob:{password}@{rest}", 1)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None  # the error of Python showed a part of the password
    if not password.startswith("s3cret"):  # s3cret is no port, and the URL has a wrong form already
        assert "write / as %2F" in str(caught.value)


def test_the_login_of_jolokia_is_never_shown() -> None:
    agent = Jolokia("http://bob:s3cret@host:8161/api/jolokia", 1)
    assert "s3cret" not in repr(agent) + agent.url


STUMBLED = JMSException('listQueues of broker: the broker answered Cannot invoke "isAutoCreated()" because "q" is null')


def test_a_list_is_asked_for_again_when_a_queue_has_gone_meanwhile() -> None:
    """Artemis 2.56 answers with its own NullPointerException then."""
    steps = Artemis().queues("*")
    first = next(steps)
    assert steps.throw(STUMBLED) == first
    with pytest.raises(StopIteration) as end:
        steps.send({"data": [], "count": 0})
    assert end.value.value == []


def test_a_list_that_fails_each_time_is_told_of() -> None:
    steps = Artemis().queues("*")
    next(steps)
    for _ in range(_ATTEMPTS - 1):
        steps.throw(STUMBLED)
    with pytest.raises(JMSException, match="is null"):
        steps.throw(STUMBLED)


def test_a_list_that_is_refused_is_not_asked_for_again() -> None:
    steps = Artemis().queues("*")
    next(steps)
    with pytest.raises(JMSSecurityException):
        steps.throw(JMSSecurityException("no"))
