"""Maps whose keys a sender chose: decoding takes a time that grows with the bytes, whatever the keys are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from pyjmsack.errors import MessageFormatException
from pyjmsack.message import ObjectMessage
from pyjmsack.message.mapping import MAX_OTHER_KEYS, SAME_HASH, mapping
from pyjmsack.message.portable import CONTENT_TYPES, decode
from pyjmsack.message.portable import encode as encode_portable
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire import decode_value
from pyjmsack.providers.amqp.wire_types import Described, Timestamp, ULong

PRIME = (1 << 61) - 1
"""Numbers that differ by a multiple of it have one hash."""


class Counting:
    """How often two keys were compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.comparisons = 0
        equal = UUID.__eq__

        def counted(one: UUID, other: object) -> bool:
            self.comparisons += 1
            return bool(equal(one, other))

        monkeypatch.setattr(UUID, "__eq__", counted)


def colliding(count: int) -> list[UUID]:
    return [UUID(int=7 + number * PRIME) for number in range(count)]


def over_amqp(keys: list[Any]) -> Any:
    content = b"".join(b"\x98" + key.bytes + b"\x40" for key in keys)
    payload = b"\xd1" + (len(content) + 4).to_bytes(4, "big") + (2 * len(keys)).to_bytes(4, "big") + content
    return decode_value(payload, 0)[0]


def over_stomp(keys: list[Any]) -> Any:
    document = {"map": [[{"uuid": str(key)}, None] for key in keys]}
    return decode(CONTENT_TYPES[ObjectMessage.wire_type], json.dumps(document))[1]


@pytest.mark.parametrize("read", [over_amqp, over_stomp])
def test_keys_that_share_a_hash_are_refused_before_they_are_compared(
    read: Callable[[list[Any]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of a UUID is its number modulo a prime, so that anybody can choose any number of them with one hash."""
    keys, count = colliding(4000), Counting(monkeypatch)
    with pytest.raises(MessageFormatException, match=f"expected at most {SAME_HASH} keys of a map with the same hash"):
        read(keys)
    assert count.comparisons == 0


@pytest.mark.parametrize("read", [over_amqp, over_stomp])
def test_keys_that_share_a_hash_by_chance_are_read(read: Callable[[list[Any]], Any]) -> None:
    """A few do."""
    keys = [*colliding(SAME_HASH), *[UUID(int=number) for number in range(100, 3000)]]
    assert read(keys) == dict.fromkeys(keys)


@pytest.mark.parametrize(
    "key",
    [int, float, Timestamp, ULong, lambda n: UUID(int=n), lambda n: Described(ULong(n), 0)],
    ids=["int", "float", "timestamp", "ulong", "uuid", "described"],
)
def test_a_map_with_very_many_keys_that_are_no_text_is_refused_on_both_sides(key: Callable[[int], Any]) -> None:
    """Numbers with different hashes may still be chosen so that a dict looks for each where the others are."""
    keys = [key(number) for number in range(MAX_OTHER_KEYS + 1)]
    assert len(mapping(keys[1:], keys[1:])) == MAX_OTHER_KEYS
    with pytest.raises(MessageFormatException, match=r"10001 keys .* bytes; expected at most 10000"):
        mapping(keys, keys)


def test_what_would_be_refused_is_not_sent() -> None:
    """The sender learns it."""
    message = ObjectMessage(dict.fromkeys(range(MAX_OTHER_KEYS + 1)))
    for write in (lambda: encode(message, "q"), lambda: encode_portable(message)):
        with pytest.raises(MessageFormatException, match="keys that are neither text nor bytes"):
            write()
    message = ObjectMessage({str(number): None for number in range(MAX_OTHER_KEYS + 1)})
    assert AmqpInbound(encode(message, "q")).to_message().object == message.object
