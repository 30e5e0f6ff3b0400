"""Both faces offer the same: the same classes, members, parameters and defaults, and what waits is awaited."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import pyjmsack
from pyjmsack import aio

ONLY_AIO = {"Connection": {"set_client_id"}}
"""A property cannot be awaited, so the setter of ``client_id`` is a method there."""
CLASSMETHOD_ONLY_AIO = {"JMSContext": {"open"}}
"""A constructor cannot be awaited."""
CONTEXTS = {"__enter__": "__aenter__", "__exit__": "__aexit__", "__iter__": "__aiter__"}
NAMES = sorted(aio.__all__)


def public(kind: type) -> dict[str, Any]:
    """Return the public members that a class has, inherited ones too."""
    names = [name for name in dir(kind) if not name.startswith("_")]
    return {name: inspect.getattr_static(kind, name) for name in names}


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter."""
    signature = inspect.signature(function)
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


def both(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of the blocking and of the asyncio class."""
    return public(getattr(pyjmsack, name)), public(getattr(aio, name))


@pytest.mark.parametrize("name", NAMES)
def test_a_class_has_the_same_public_members_in_both_faces(name: str) -> None:
    """The documented exceptions are listed above."""
    blocking, asynchronous = both(name)
    extra = ONLY_AIO.get(name, set()) | CLASSMETHOD_ONLY_AIO.get(name, set())
    assert blocking.keys() == asynchronous.keys() - extra
    assert extra <= asynchronous.keys()


@pytest.mark.parametrize("name", NAMES)
def test_methods_take_the_same_arguments_in_both_faces(name: str) -> None:
    """Names, order, kinds and defaults."""
    blocking, asynchronous = both(name)
    for member, value in blocking.items():
        if inspect.isfunction(value):
            assert parameters(value) == parameters(asynchronous[member]), member


@pytest.mark.parametrize("name", NAMES)
def test_properties_are_properties_in_both_faces_and_settable_in_both_or_none(name: str) -> None:
    """But for ``client_id``."""
    blocking, asynchronous = both(name)
    for member, value in blocking.items():
        twin = asynchronous[member]
        assert isinstance(value, property) == isinstance(twin, property), member
        if isinstance(value, property) and (name, member) != ("Connection", "client_id"):
            assert (value.fset is None) == (twin.fset is None), member


@pytest.mark.parametrize("name", NAMES)
def test_what_a_context_manager_or_iterable_is_in_one_face_it_is_in_the_other(name: str) -> None:
    """``with`` and ``async with``, ``for`` and ``async for``."""
    blocking, asynchronous = getattr(pyjmsack, name), getattr(aio, name)
    for plain, awaited in CONTEXTS.items():
        assert hasattr(blocking, plain) == hasattr(asynchronous, awaited)
        assert not hasattr(asynchronous, plain)


@pytest.mark.parametrize("name", NAMES)
def test_public_members_are_documented(name: str) -> None:
    """In both faces, each in its own words: a reader of one face need not look into the other."""
    for members in both(name):
        documents = {member: inspect.getdoc(value) or "" for member, value in members.items() if callable(value)}
        assert not [member for member, text in documents.items() if not text or "see :" in text.lower()]


def test_the_setter_of_the_client_id_is_a_method_in_asyncio() -> None:
    """The one exception, and its argument."""
    setter = inspect.getattr_static(pyjmsack.Connection, "client_id").fset
    assert setter is not None
    assert inspect.getattr_static(aio.Connection, "client_id").fset is None
    assert parameters(aio.Connection.set_client_id) == parameters(setter)
    assert inspect.iscoroutinefunction(aio.Connection.set_client_id)
