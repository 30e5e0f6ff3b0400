"""The images' variants, TLS and logins, and the pairs that share a store. They need containers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from containers.conftest import Pair, await_serving
from containers.test_faults import drain, send
from pyjmsack import ConnectionFactory, JMSException, JMSSecurityException
from pyjmsack.broker.readiness import answers_amqp, pick_port
from pyjmsack.testing import ContainerBroker

IMAGES = ["pyjmsack/artemis:2.56.0", "pyjmsack/activemq:6.3.1", "pyjmsack/activemq:5.18.3"]

pytestmark = [pytest.mark.xdist_group("containers"), pytest.mark.usefixtures("containers")]
EACH_IMAGE = pytest.mark.parametrize("image", IMAGES)


@EACH_IMAGE
def test_only_the_login_it_was_started_with_is_let_in(image: str, queue_name: str) -> None:
    with ContainerBroker(image, environment={"BROKER_USER": "alice", "BROKER_PASSWORD": "wonderland"}) as broker:
        with ConnectionFactory(broker.amqp_url, username="alice", password="wonderland").create_context() as context:
            context.create_producer(context.create_queue(queue_name)).send("let in")
        for wrong in ({"username": "alice", "password": "wrong"}, {"username": "bob", "password": "wonderland"}, {}):
            with pytest.raises(JMSSecurityException):
                ConnectionFactory(broker.amqp_url, **wrong).create_connection()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what broker and client need: PKCS12 for Java, PEM for Python."""
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    server = authority.issue_cert("127.0.0.1", "localhost")
    authority.issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(directory / "client.pem"))
    trustme.CA().issue_cert("client").private_key_and_cert_chain_pem.write_to_path(str(directory / "rogue.pem"))
    secret = serialization.BestAvailableEncryption(b"changeit")
    chain = [x509.load_pem_x509_certificate(pem.bytes()) for pem in server.cert_chain_pems]
    key = serialization.load_pem_private_key(server.private_key_pem.bytes(), None)
    (directory / "server.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"server", key, chain[0], chain[1:], secret)
    )
    # not serialize_key_and_certificates: Java takes a certificate without its own mark for no authority
    trusted = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(authority.cert_pem.bytes()), b"ca")
    (directory / "ca.p12").write_bytes(pkcs12.serialize_java_truststore([trusted], secret))
    directory.chmod(0o755)
    return directory


@EACH_IMAGE
def test_it_speaks_tls_and_asks_for_a_client_certificate(image: str, certificates: Path, queue_name: str) -> None:
    port = pick_port()
    environment = {"BROKER_TLS": "true", "BROKER_CLIENT_CERTIFICATE": "true"}
    with ContainerBroker(
        image, environment=environment, volumes={str(certificates): "/tls"}, ports={5671: port}
    ) as broker:
        trust = f"transport.trustStoreLocation={certificates / 'ca.pem'}"
        client, rogue = (f"&transport.keyStoreLocation={certificates / name}.pem" for name in ("client", "rogue"))
        send(f"amqps://127.0.0.1:{port}?{trust}{client}", queue_name, "over TLS")
        assert drain(broker.amqp_url, queue_name, 1) == ["over TLS"]
        for refused in (trust, trust + rogue, client.lstrip("&")):
            with pytest.raises(JMSException):
                send(f"amqps://127.0.0.1:{port}?{refused}", queue_name, "refused")


def test_the_second_of_a_pair_takes_over_with_every_message_and_artemis_goes_back(
    pair: Pair, docker: str, queue_name: str
) -> None:
    first, second = pair.urls
    bodies = [f"message {number}" for number in range(20)]
    send(first, queue_name, *bodies)
    assert not answers_amqp(int(second.rpartition(":")[2]))
    subprocess.run([docker, "kill", f"{pair.name}-1"], stdout=subprocess.DEVNULL, check=True)
    await_serving(second)
    assert drain(second, queue_name, 20) == bodies
    send(second, queue_name, "while the first was away")
    subprocess.run([docker, "start", f"{pair.name}-1"], stdout=subprocess.DEVNULL, check=True)
    if pair.returns:
        await_serving(first)
    assert drain(first if pair.returns else second, queue_name, 1) == ["while the first was away"]
