"""The names of fields in JSON as Jackson writes them: ``order_id`` is ``orderId``. Keys of mappings stay as they are.

``typed.py`` writes and reads a dataclass, with the table of :func:`keys`. A pydantic model writes and reads its own
JSON. Therefore this module renames the keys after the model wrote the JSON (:func:`as_camel`), and before the model
reads the JSON (:func:`as_fields`).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from pyjmsack.errors import MessageFormatException

__all__ = ["DEEPEST", "as_camel", "as_fields", "camel", "is_model", "keys"]

DEEPEST: Final = 64
"""The largest number of levels of nested values in a body."""


def is_model(kind: Any) -> bool:
    """Return whether this is a pydantic model. pydantic itself is not imported."""
    return isinstance(kind, type) and hasattr(kind, "model_validate") and hasattr(kind, "model_dump")


def camel(name: str) -> str:
    """Return the name of a field in camelCase.

    >>> camel("order_id"), camel("class_"), camel("_id"), camel("orderId")
    ('orderId', 'class', '_id', 'orderId')
    """
    plain = name.strip("_")
    start = name[: len(name) - len(name.lstrip("_"))] if plain else name
    first, *others = plain.split("_")
    return start + first + "".join(part[:1].upper() + part[1:] for part in others)


def keys(kind: str, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the key of each field in JSON.

    Args:
        kind: the name of the class, for an error.
        names: each field with its key.

    Raises:
        MessageFormatException: two fields have the same key.
    """
    owners: dict[str, str] = {}
    for name, key in names:
        other = owners.setdefault(key, name)
        if other != name:
            raise MessageFormatException(
                f"{kind}: the fields {other!r} and {name!r} would both be {key!r} in camelCase; rename one of them"
            )
    return {name: key for key, name in owners.items()}


def _model_fields(kind: Any) -> Mapping[str, Any]:
    """Return the fields of a pydantic model. Return no fields for a class that only looks like a model.

    Raises:
        NameError: the annotation of a field names a class that does not exist.
    """
    if not getattr(kind, "__pydantic_complete__", True):
        kind.model_rebuild()  # needed if an annotation names a class that was defined later
    return getattr(kind, "model_fields", {})


@lru_cache(maxsize=256)
def _fields_of_model(kind: Any) -> dict[str, tuple[str, str]]:
    """Return two keys for each field of a pydantic model: its key in the model's own JSON, and its key in camelCase.

    If a field has an alias, both keys are the alias.

    Raises:
        MessageFormatException: two fields have the same key in camelCase.
    """
    fields = {name: field.serialization_alias for name, field in _model_fields(kind).items()}
    fields |= {name: field.alias for name, field in getattr(kind, "model_computed_fields", {}).items()}
    new = keys(kind.__name__, ((name, alias or camel(name)) for name, alias in fields.items()))
    return {name: (alias or name, new[name]) for name, alias in fields.items()}


def _is_root_model(kind: Any) -> bool:
    """Return whether this is a pydantic model without field names, which is a ``RootModel[…]``."""
    return bool(getattr(kind, "__pydantic_root_model__", False))


def as_camel(value: Any, dumped: Any, depth: int = 0) -> Any:
    """Return the JSON of a value with the names of its fields in camelCase.

    Args:
        value: a value that pydantic wrote as JSON.
        dumped: the JSON that pydantic wrote for the value.
        depth: how many levels deep the value is nested in the body.

    Raises:
        MessageFormatException: two names are the same in camelCase, or more than 64 levels of values are nested.
    """
    if depth > DEEPEST:
        raise MessageFormatException(f"a body: expected at most {DEEPEST} levels of nested values")
    kind: Any = type(value)
    if is_model(kind) and _is_root_model(kind):
        return as_camel(value.root, dumped, depth + 1)
    if isinstance(dumped, dict):
        if is_model(kind):
            return _renamed(value, dumped, _fields_of_model(kind), depth)
        if dataclasses.is_dataclass(kind):
            new = keys(type(value).__name__, ((field.name, camel(field.name)) for field in dataclasses.fields(value)))
            return _renamed(value, dumped, {name: (name, key) for name, key in new.items()}, depth)
        if isinstance(value, Mapping) and len(value) == len(dumped):
            pairs = zip(value.values(), dumped.items(), strict=True)
            return {key: as_camel(each, inner, depth + 1) for each, (key, inner) in pairs}
    if isinstance(dumped, list) and isinstance(value, list | tuple | set | frozenset) and len(value) == len(dumped):
        return [as_camel(each, inner, depth + 1) for each, inner in zip(value, dumped, strict=True)]
    return dumped


def _renamed(value: Any, dumped: dict[str, Any], fields: Mapping[str, tuple[str, str]], depth: int) -> dict[str, Any]:
    by_key = {old: (name, new) for name, (old, new) in fields.items()}
    made: dict[str, Any] = {}
    for key, inner in dumped.items():
        name, new = by_key.get(key, (key, key))  # a key without a field is an extra value of the model
        if new in made:
            raise MessageFormatException(
                f"{type(value).__name__}: two of the values would be {new!r} in camelCase; rename one"
            )
        made[new] = as_camel(getattr(value, name, None), inner, depth + 1)
    return made


Choose = Callable[[tuple[Any, ...], Any], Any]
"""A function that turns a value of JSON into one of several types, or raises ``MessageFormatException``."""


def as_fields(kind: Any, value: Any, choose: Choose, depth: int = 0) -> Any:
    """Return a value of JSON in which the names of the fields replace the keys in camelCase, so that pydantic can read
    the value.

    Args:
        kind: the type that pydantic will make of the value.
        value: a value of JSON.
        choose: turns a value into one of the types of a union. The names of the fields depend on the chosen type.
        depth: how many levels deep ``value`` is nested in the body.

    Raises:
        MessageFormatException: two names are the same in camelCase, more than 64 levels of values are nested, or
            ``choose`` finds no type.
    """
    if depth > DEEPEST:
        raise MessageFormatException(f"a body: expected at most {DEEPEST} levels of nested values")
    if not isinstance(value, Mapping | list):
        return value
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return as_fields(inside[0], value, choose, depth)
    if origin in (typing.Union, types.UnionType):
        holding = [one for one in inside if _holds_values(one)]
        if len(holding) > 1 and any(map(_has_fields, holding)):
            return choose(inside, value)
        return as_fields(holding[0], value, choose, depth + 1) if holding else value
    if is_model(kind) and _is_root_model(kind):
        return as_fields(kind.model_fields["root"].annotation, value, choose, depth + 1)
    if isinstance(value, Mapping):
        if is_model(kind) or dataclasses.is_dataclass(kind):
            return _by_field(_read_keys(kind), value, choose, depth)
        wanted = inside[1] if len(inside) == 2 else Any
        return {key: as_fields(wanted, each, choose, depth + 1) for key, each in value.items()}
    if origin is tuple and Ellipsis not in inside and len(inside) == len(value):
        return [as_fields(each, item, choose, depth + 1) for each, item in zip(inside, value, strict=True)]
    return [as_fields(inside[0] if inside else Any, item, choose, depth + 1) for item in value]


def _holds_values(kind: Any) -> bool:
    """Return whether a JSON object or array can become this type."""
    if typing.get_origin(kind) is typing.Literal:
        return False
    scalar = isinstance(kind, type) and not issubclass(kind, Mapping | list | tuple | set | frozenset)
    return not scalar or kind is object or _has_fields(kind)


def _has_fields(kind: Any) -> bool:
    """Return whether a type is or contains a class with fields."""
    found = [kind]
    for _ in range(DEEPEST):
        if not found:
            return False
        each = found.pop()
        if is_model(each) or dataclasses.is_dataclass(each):
            return True
        found += typing.get_args(each) if typing.get_origin(each) is not typing.Literal else ()
    return False


@lru_cache(maxsize=256)
def _read_keys(kind: Any) -> dict[str, tuple[str, Any]]:
    """Return the name and the type of each field by its key in camelCase. A field with an alias has the alias as its
    name, because pydantic reads the field by its alias.

    Raises:
        MessageFormatException: two fields have the same key.
    """
    if is_model(kind):
        fields = {name: (each.validation_alias, each.annotation) for name, each in _model_fields(kind).items()}
    else:
        hints = typing.get_type_hints(kind)
        fields = {field.name: (None, hints[field.name]) for field in dataclasses.fields(kind)}
    known = {name: (alias, inner) for name, (alias, inner) in fields.items() if isinstance(alias, str | None)}
    named = keys(kind.__name__, ((name, alias or camel(name)) for name, (alias, _) in known.items()))
    return {key: (known[name][0] or name, known[name][1]) for name, key in named.items()}


def _by_field(fields: Mapping[str, tuple[str, Any]], value: Mapping[str, Any], choose: Choose, depth: int) -> Any:
    hidden = {name for name, _ in fields.values()} - fields.keys()
    made = {}
    for key, inner in value.items():
        if key not in hidden:  # a hidden key is a field's name in Python, and the field has another name in JSON
            name, kind = fields.get(key, (key, Any))
            made[name] = as_fields(kind, inner, choose, depth + 1)
    return made
