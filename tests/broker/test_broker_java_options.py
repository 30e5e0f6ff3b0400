"""The table of the Java clients' options against the clients' own classes: no setter is without a verdict."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyjmsack.broker.artemis_distribution import ensure_artemis
from pyjmsack.migrate import Verdict
from pyjmsack.migrate.options import translate

_PUBLIC = 0x0001
_OBJECTS = ("Ljava/util/concurrent", "Ljava/util/function", "Lio/netty")

CLIENTS = [
    ("artemis", "artemis-jms-client", "org/apache/activemq/artemis/jms/client/ActiveMQConnectionFactory", ""),
    ("activemq", "activemq-client", "org/apache/activemq/ActiveMQConnectionFactory", "jms."),
    ("activemq", "activemq-client", "org/apache/activemq/ActiveMQSslConnectionFactory", "jms."),
    ("activemq", "activemq-client", "org/apache/activemq/ActiveMQPrefetchPolicy", "jms.prefetchPolicy."),
    ("activemq", "activemq-client", "org/apache/activemq/RedeliveryPolicy", "jms.redeliveryPolicy."),
    ("activemq", "activemq-client", "org/apache/activemq/openwire/OpenWireFormat", "wireFormat."),
    ("activemq", "activemq-client", "org/apache/activemq/transport/tcp/TcpTransport", ""),
    ("activemq", "activemq-client", "org/apache/activemq/transport/tcp/SslTransport", ""),
    ("activemq", "activemq-client", "org/apache/activemq/transport/failover/FailoverTransport", ""),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/JmsConnectionFactory", "jms."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/policy/JmsDefaultPrefetchPolicy", "jms.prefetchPolicy."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/policy/JmsDefaultRedeliveryPolicy", "jms.redeliveryPolicy."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/policy/JmsDefaultPresettlePolicy", "jms.presettlePolicy."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/transports/TransportOptions", "transport."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/provider/amqp/AmqpProvider", "amqp."),
    ("qpid", "qpid-jms-client", "org/apache/qpid/jms/provider/failover/FailoverProvider", "failover."),
]
NOT_OF_URLS = {
    "providerListener", "transportListener", "peerCertificates", "socketOptions", "inUnmarshallCache",
    "preferedWireFormatInfo", "wireFormat.inUnmarshallCache", "amqp.providerListener", "failover.providerListener",
}  # fmt: skip
"""Setters that the client calls itself, with objects that no URL can name."""


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    """The libraries of an Artemis distribution, among which are all three clients."""
    return sorted(Path(entry) for entry in (ensure_artemis().home / "lib").glob("*.jar"))


@pytest.mark.parametrize(
    ("client", "jar", "name", "prefix"), CLIENTS, ids=lambda value: value.rpartition("/")[2] or "-"
)
def test_no_setter_of_a_java_client_is_without_a_verdict(
    jars: list[Path], client: str, jar: str, name: str, prefix: str
) -> None:
    library = next(path for path in jars if path.name.startswith(f"{jar}-"))
    properties = [prefix + one for one in setters(library, name)]
    assert properties
    unknown = [one for one in properties if one not in NOT_OF_URLS and never_heard(client, one)]
    assert unknown == []


def test_no_option_of_an_artemis_connector_is_without_a_verdict(jars: list[Path]) -> None:
    name = "org/apache/activemq/artemis/core/remoting/impl/netty/TransportConstants"
    library = next(path for path in jars if path.name.startswith("artemis-core-client-"))
    texts = [text for text in constants(library, name) if text[:1].islower() and text.isalnum() and len(text) < 40]
    options = [text for text in texts if any(character.isupper() for character in text)]
    assert "trustStorePath" in options
    noise = {"nettyHttpHeader"}
    assert [one for one in options if one not in noise and never_heard("artemis", one)] == []


def never_heard(client: str, option: str) -> bool:
    made = translate(client, option, "1", "amqp")
    return made.verdict is Verdict.BY_HAND and made.why.startswith("no version of the")


def constants(jar: Path, name: str) -> list[str]:
    """Return the constant texts of a class."""
    data = zipfile.ZipFile(jar).read(f"{name}.class")
    pool, _ = constant_pool(data)
    return [pool[index] for index in string_constants(data) if isinstance(pool.get(index), str)]


def setters(jar: Path, name: str) -> list[str]:
    """Return the properties of a bean that a text can set, read from its class file."""
    data = zipfile.ZipFile(jar).read(f"{name}.class")
    found = []
    for flags, method, descriptor in methods(data):
        bean = method.startswith("set") and len(method) > 3 and descriptor.endswith(")V")
        argument = descriptor[1:].partition(")")[0]
        single = argument in ("I", "J", "Z", "D", "S") or (argument.count(";") == 1 and argument.startswith("L"))
        if flags & _PUBLIC and bean and single and not argument.startswith(_OBJECTS):
            found.append(method[3].lower() + method[4:])
    return sorted(set(found))


SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of each kind of constant, without its tag."""


def walk_pool(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield number, tag and position of each constant, at last the position after the pool with tag 0."""
    count, position, number = struct.unpack_from(">H", data, 8)[0], 10, 1
    while number < count:
        tag = data[position]
        yield number, tag, position + 1
        size = 2 + struct.unpack_from(">H", data, position + 1)[0] if tag == 1 else SIZES[tag]
        position += 1 + size
        number += 2 if tag in (5, 6) else 1
    yield number, 0, position


def constant_pool(data: bytes) -> tuple[dict[int, str], int]:
    """Return the texts of the pool by number, and where it ends."""
    texts, end = {}, 0
    for number, tag, position in walk_pool(data):
        if tag == 1:
            length = struct.unpack_from(">H", data, position)[0]
            texts[number] = data[position + 2 : position + 2 + length].decode("utf-8", "replace")
        end = position
    return texts, end


def string_constants(data: bytes) -> list[int]:
    """Return the numbers of the texts that are values of constants."""
    return [struct.unpack_from(">H", data, position)[0] for _, tag, position in walk_pool(data) if tag == 8]


def methods(data: bytes) -> Iterator[tuple[int, str, str]]:
    """Yield flags, name and descriptor of each method."""
    texts, position = constant_pool(data)
    interfaces = struct.unpack_from(">H", data, position + 6)[0]
    position += 8 + 2 * interfaces
    for kind in ("fields", "methods"):
        count = struct.unpack_from(">H", data, position)[0]
        position += 2
        for _ in range(count):
            flags, name, descriptor, attributes = struct.unpack_from(">HHHH", data, position)
            position += 8
            for _ in range(attributes):
                position += 6 + struct.unpack_from(">I", data, position + 2)[0]
            if kind == "methods":
                yield flags, texts[name], texts[descriptor]
