"""JSON that somebody else wrote: limits, and what other threads do meanwhile."""

from __future__ import annotations

import json
import random
import threading
from decimal import Decimal
from typing import Any

import pytest

from pyjmsack import json_text
from pyjmsack.json_text import read_json


@pytest.fixture(params=["fast", "slow"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers read the same."""
    if request.param == "slow":
        monkeypatch.setattr(json_text, "_MOST_AT_ONCE", -1)
        monkeypatch.setattr(json_text, "_LONG", -1)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -12,
        1.5,
        -2e300,
        "",
        "a,[{\n\u20ac\U0001f40e\\",
        [],
        {},
        [[1], {"a": {"b": [None, 2]}}, "x"],
        10**400,
    ],
)
def test_what_json_wrote_is_read_again(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for form in (text, f" {text}\n", text.encode(), text.encode("utf-16"), text.encode("utf-32-le")):
        assert read_json(form, 100) == value


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "[",
        "[1,]",
        '{"a":}',
        "{1:2}",
        "nul",
        '"',
        "[1]x",
        "9" * 5000,
        "[1\uff11]",
        "[1.\uff11]",
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several errors of Python, all of them of this class
        read_json(text, 100)


@pytest.mark.usefixtures("parser")
def test_deep_nesting_is_an_error_and_does_not_end_the_process() -> None:
    with pytest.raises(RecursionError):
        read_json("[" * 100_000, 1_000_000)


@pytest.mark.usefixtures("parser")
def test_numbers_with_a_fraction_are_made_by_the_given_function() -> None:
    assert read_json("[1.10, 2e1, 3]", 100, parse_float=Decimal) == [Decimal("1.10"), Decimal("2e1"), 3]


@pytest.mark.parametrize("text", ["[1,2,3]", "[[[1]]]", '{"a":{"b":{}}}'])
def test_more_values_than_the_limit_are_refused_before_they_are_made(text: str) -> None:
    read_json(text, 3)
    with pytest.raises(ValueError, match="3 values, more than the limit of 2"):
        read_json(text, 2)


def test_signs_in_strings_are_not_counted() -> None:
    """A table in one string is one value."""
    text = json.dumps(['a,b,c\\"[{,,', "x,,,,\n"])
    assert read_json(text, 2) == json.loads(text)
    with pytest.raises(ValueError, match="2 values, more than the limit of 1"):
        read_json(text, 1)


def test_other_threads_run_while_many_values_are_read() -> None:
    """The parser of the standard library kept a loop of ``asyncio`` waiting for seconds. Here a thread counts."""
    text = "[" + "[[[[]]]]," * 200_000 + "0]"
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted
        assert len(read_json(text, 2_000_000)) == 200_001
        ours = counted - before
        seen = []
        for _ in range(3):
            before = counted
            assert len(json.loads(text)) == 200_001
            seen.append(counted - before)
        standard = min(seen)  # other processes may take the processor from this thread, and then the other one counts
    finally:
        over.set()
        thread.join()
    assert ours > 4 * standard


def test_half_a_character_in_bytes_is_refused() -> None:
    """Python reads them so slowly that 20 MB stopped all threads of the process for 2.4 s."""
    with pytest.raises(ValueError, match="utf-8"):
        read_json(b'"\xed\xa0\xbd"', 10)
    assert read_json(rb'"\ud83d"', 10) == "\ud83d"


def test_no_call_puts_more_than_a_slice_of_names_into_a_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser of the standard library put two million names of one object into a mapping with one call of 1.3 s."""
    sizes: list[int] = []

    class Pairs(list[Any]):
        def __getitem__(self, place: Any) -> Any:
            sizes.append(len(super().__getitem__(place)))
            return super().__getitem__(place)

    mapping = json_text._mapping
    monkeypatch.setattr(json_text, "_mapping", lambda pairs: mapping(Pairs(pairs)))
    text = "{" + ",".join(f'"{number}":{number}' for number in range(250_000)) + "}"
    assert read_json(text, 250_000) == json.loads(text)
    assert sizes == [10_000] * 25


def _made(chance: random.Random, depth: int = 0) -> str:
    """Return a text of JSON: objects with names that occur twice, numbers that are none, and spaces."""
    space = chance.choice(["", " ", "\n\t"])
    kind = chance.randrange(8 if depth < 5 else 5)
    if kind < 5:
        return space + chance.choice(
            ["NaN", "-Infinity", "1", "-0", "1.50", "2e400", "true", "null", '"\\ud83d x"', '"a"']
        )
    parts = [_made(chance, depth + 1) for _ in range(chance.randrange(6))]
    if kind == 5:
        return f"{space}[{','.join(parts)}{space}]"
    named = [f'{space}"{chance.choice(["a", "b", chr(92) + "u0061", ""])}"{space}:{part}' for part in parts]
    return f"{{{','.join(named)}{space}}}"


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("size", [1, 2, 10_000])
def test_the_values_are_those_of_the_standard_library(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also their order, and the last one of values with the same name."""
    monkeypatch.setattr(json_text, "_SLICE", size)
    chance = random.Random(size)
    for _ in range(500):
        text = _made(chance)
        assert repr(read_json(text, 100_000)) == repr(json.loads(text)), text
