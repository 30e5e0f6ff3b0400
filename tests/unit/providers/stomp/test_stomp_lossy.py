"""Which frames may lack the content of their message, because no broker converts it for STOMP (S174)."""

from __future__ import annotations

import pytest

from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.inbound import StompInbound

JAVA_ID = rb"message-id:ID\cvm-45723-1795664498511-1\c1\c1\c1\c3"
STOMP_ID = rb"message-id:ID\cvm-43037-1795664495086-4\c1\c-1\c1\c1"
CORE = b"message-id:50,22\ndestination:q\ntimestamp:1\n__AMQ_CID:379c91eb-e94c-11f1-9fb9-02fc00000001\n"


@pytest.mark.parametrize(
    ("broker", "head", "body", "lossy"),
    [
        ("classic-6", b"destination:/queue/q\nsubscription:1\n" + JAVA_ID, b"", True),
        ("classic-5", b"destination:/queue/q\nsubscription:1\n" + JAVA_ID, b"", True),
        ("classic-6", b"destination:/queue/q\nsubscription:1\n" + JAVA_ID, b"text", False),
        ("classic-6", b"destination:/queue/q\ncontent-length:0\n" + JAVA_ID, b"", False),
        ("classic-6", b"destination:/queue/q\nsubscription:1\n" + STOMP_ID, b"", False),
        ("classic-6", b"destination:/queue/q\nJMS_pyjmsack_body:null-text\n" + JAVA_ID, b"", False),
        ("artemis", b"subscription:s1\n" + CORE + b"ack:50,22\ncontent-length:1", b"\0", True),
        ("artemis", b"subscription:s1\n" + CORE + b"ack:50,22", b"", True),
        ("artemis", b"subscription:s1\n" + CORE + b"ack:50,22", b"a text of a Java client", False),
        ("artemis", b"subscription:s1\n" + CORE + b"ack:50,22", b"\n<xml/>", False),
        ("artemis", b"subscription:s1\n" + CORE + b"ack:50,22", "\u010a stream".encode(), True),
        ("artemis", b"subscription:s1\nJMS_AMQP_MA_x-opt-jms-msg-type:5\n" + CORE + b"ack:50,22", b"", False),
        ("classic-6", b"destination:/queue/q\nscheduledJobId:x\n" + JAVA_ID, b"", False),
        ("artemis", b"subscription:s1\ncontent-length:5\n" + CORE + b"ack:50,22", b"bytes", False),
        ("artemis", b"subscription:s1\nmessage-id:5,2\nJMS_AMQP_MA_x-opt-jms-msg-type:2\nack:5,2", b"", True),
        ("artemis", b"subscription:s1\nmessage-id:5,2\nJMS_AMQP_MA_x-opt-jms-msg-type:5\nack:5,2", b"text", False),
        ("artemis", b"subscription:s1\nmessage-id:5,2\nJMS_AMQP_ORIGINAL_ENCODING:7\nack:5,2", b"", True),
        ("artemis", b"subscription:s1\nmessage-id:5,2\nack:5,2\ncontent-length:4", b"text", False),
    ],
)
def test_a_frame_that_may_lack_its_content_is_never_copied(broker: str, head: bytes, body: bytes, lossy: bool) -> None:
    inbound = StompInbound(b"\n" + head, body, dialect_of(broker))
    assert (inbound.lossy, inbound.whole) == (lossy, not lossy)


def test_the_number_in_a_group_of_a_java_client_is_no_other_property() -> None:
    """Artemis notes it, and the connection of the sender, under names of its own."""
    inbound = StompInbound(
        b"\n" + CORE + b"_AMQ_GROUP_ID:g\n_AMQ_GROUP_SEQUENCE:3\nwhat:small", b"x", dialect_of("artemis")
    )
    message = inbound.to_message()
    assert dict(message.properties) == {"what": "small", "JMSXGroupID": "g", "JMSXGroupSeq": 3}
