"""What uses an open connection stays in its process, and the error says what can be sent to another one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pyjmsack
from pyjmsack import TextMessage, aio
from pyjmsack.aio import _face as aio_face
from pyjmsack.aio._runtime import AioRuntime
from pyjmsack.sync import _face as sync_face

NAMES = ["Connection", "MessageConsumer", "MessageProducer", "QueueBrowser", "Requestor", "Session"]
KINDS = [getattr(face, name) for face in (pyjmsack, aio) for name in NAMES]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
@pytest.mark.parametrize("call", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda call: call.__name__)
def test_an_object_of_a_connection_is_neither_copied_nor_pickled(kind: Any, call: Callable[[Any], Any]) -> None:
    """A copy shared the connection, and ``pickle`` complained about a lock."""
    with pytest.raises(TypeError, match=rf"a {kind.__name__} cannot be copied .* connect in the other process"):
        call(kind.__new__(kind))


@pytest.mark.parametrize("face", [sync_face, aio_face], ids=["sync", "aio"])
@pytest.mark.parametrize("call", [pickle.dumps, copy.deepcopy], ids=lambda call: call.__name__)
def test_a_received_message_is_not_pickled_and_the_error_says_what_is(face: Any, call: Callable[[Any], Any]) -> None:
    message = TextMessage("a")
    assert pickle.loads(pickle.dumps(message)).text == "a"
    message._ack = face.Acknowledger.__new__(face.Acknowledger)
    with pytest.raises(TypeError, match=r"a received message cannot be pickled.*pickle its body"):
        call(message)


@pytest.mark.parametrize(
    "call",
    [lambda message: pickle.loads(pickle.dumps(message)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deep"],
)
def test_a_message_that_needs_no_acknowledgement_is_copied_and_pickled(call: Callable[[Any], Any]) -> None:
    """S12: the object that makes ``await message.acknowledge()`` work in asyncio goes with the message."""
    message = TextMessage("a")
    message._ack = AioRuntime.idle_acknowledger
    assert call(message)._ack is AioRuntime.idle_acknowledger
