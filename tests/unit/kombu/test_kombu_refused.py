"""Which headers and bodies of a task are refused before a worker of Celery reserves a place in its pool."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from pyjmsack.kombu.refused import check_task


def task(**headers: Any) -> Any:
    return SimpleNamespace(headers={"task": "add", "id": "one", **headers}, payload=None)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"timelimit": [None, None]},
        {"timelimit": (300, 12.5)},
        {"timelimit": [2**63, float("inf")]},
        {"timelimit": [-1, 0]},
        {"timelimit": None, "stamped_headers": None, "stamps": None},
        {"stamped_headers": ["a", "b"], "stamps": {"a": 1, "b": ["x"]}},
        {"stamped_headers": "a", "stamps": {"a": 1}},
        {"shadow": None},
        {"shadow": ""},
        {"shadow": "add (nightly)", "id": UUID(int=7)},
    ],
)
def test_what_celery_sends_is_taken(headers: dict[str, Any]) -> None:
    check_task(task(**headers))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timelimit", 5),
        ("timelimit", "never"),
        ("timelimit", [1]),
        ("timelimit", [True, None]),
        ("timelimit", ["a", "b"]),
        ("timelimit", [float("nan"), None]),
        ("timelimit", [10**400, None]),
        ("stamped_headers", 5),
        ("stamped_headers", [[]]),
        ("stamps", [1]),
        ("shadow", ["a"]),
        ("shadow", {"a": 1}),
        ("shadow", 5),
        ("id", ["one"]),
        ("id", 7),
        ("id", None),
        ("id", "\ud800"),
        ("get", 1),
        ("chain", "x"),
        ("chain", [1]),
        ("chain", [{"task": "add"}]),
        ("errbacks", 5),
        ("errbacks", [[1, 2]]),
        ("_children", [1]),
    ],
)
@pytest.mark.parametrize("version", ["1", "2", "mixed", "mixed, named in the body"])
def test_a_header_of_a_wrong_type_is_named(name: str, value: Any, version: str) -> None:
    """Four tasks with a list as ``shadow`` stopped a worker without end."""
    message = task(**{name: value})
    if version == "mixed":
        message = SimpleNamespace(headers={"task": "add"}, payload={"args": [], "id": "one", name: value})
    elif version != "2":
        args = {} if version == "1" else {"args": []}
        message = SimpleNamespace(headers={}, payload=message.headers | args)
    with pytest.raises(ValueError, match=f"the header {name} .*expected"):
        check_task(message)


@pytest.mark.parametrize(
    "links",
    [None, {}, {"chain": [{"task": "a", "options": {}}], "errbacks": [{}]}, {"callbacks": None, "chord": None}, [], 0],
)
def test_links_to_other_tasks_are_taken(links: Any) -> None:
    check_task(SimpleNamespace(headers={"task": "add", "id": "one"}, payload=([1, 2], {}, links)))


@pytest.mark.parametrize("links", [9, [1], "callbacks", {1: 2}])
def test_links_of_a_wrong_type_are_refused(links: Any) -> None:
    """Celery raised in a thread of the pool, which acknowledged nothing: eight such messages stopped a worker."""
    with pytest.raises(ValueError, match=r"the third part of the body is .*expected names and values"):
        check_task(SimpleNamespace(headers={"task": "add", "id": "one"}, payload=[[1, 2], {}, links]))


@pytest.mark.parametrize("body", ["abc", b"abc", {"a": 1, "b": 2, "c": 3}])
def test_a_body_of_three_characters_or_names_is_no_body_of_three_parts(body: Any) -> None:
    """Celery took the third one for the names of the tasks that follow, and raised in a thread of the pool."""
    with pytest.raises(ValueError, match=r"the body is .*expected a list of three parts"):
        check_task(SimpleNamespace(headers={"task": "add", "id": "one"}, payload=body))


@pytest.mark.parametrize("name", ["get", "_children", "id", "chain", "errbacks"])
def test_links_that_would_end_a_thread_of_the_pool_are_refused(name: str) -> None:
    """Celery makes one object of the headers and the links, and uses the object where the pool expects no error."""
    with pytest.raises(ValueError, match=f" {name}.*expected"):
        check_task(SimpleNamespace(headers={"task": "add", "id": "one"}, payload=[[1, 2], {}, {name: 1}]))
