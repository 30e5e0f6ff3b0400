"""`pyjmsack migrate` at a real broker: its code receives what a Java service would, and `--check` connects."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli_support import Cli, put

from pyjmsack import ConnectionFactory

WAIT = 30.0
"""Seconds after which a message that should come has not come."""

JAVA = """\
import jakarta.jms.*;
class Orders {
    @JmsListener(destination = "migrate.orders", selector = "JMSPriority = 4", concurrency = "2-5")
    public void receive(Message message) {}
}
"""


@pytest.fixture
def service(tmp_path: Path, broker_url: str) -> Path:
    """A Spring service whose broker is the one of the tests."""
    address = urlsplit(broker_url)
    properties = f"spring.artemis.broker-url=tcp://{address.hostname}:61616\n"
    (tmp_path / "application.properties").write_text(properties, encoding="utf-8")
    (tmp_path / "Orders.java").write_text(JAVA, encoding="utf-8")
    return tmp_path


def port(broker_url: str) -> str:
    return f"61616={urlsplit(broker_url).port}"


def test_the_code_receives_and_gives_a_message_whose_handler_raised_again(
    cli: Cli, service: Path, broker_url: str
) -> None:
    result = cli.run("migrate", "--broker", "artemis", "--port", port(broker_url), "--emit", "py", service)
    assert result.exit_code == 0, result.output
    made: Any = ModuleType("made")
    exec(compile(result.stdout, "made.py", "exec"), made.__dict__)

    seen: list[str] = []
    arrived = threading.Event()

    def handler(message: Any, session: Any) -> None:
        assert session.transacted
        seen.append(message.text)
        if len(seen) == 1:
            raise ValueError("the first time")
        arrived.set()

    put(broker_url, "migrate.orders", ["an order"])
    made.serve(
        made.artemis_factory,
        handler,
        made.Queue("migrate.orders"),
        made.AckMode.SESSION_TRANSACTED,
        selector="JMSPriority = 4",
    )
    with made.connected(made.artemis_factory) as connection:
        connection.start()
        assert arrived.wait(WAIT)
    assert seen == ["an order", "an order"]


BOOKS = """\
package shop;
import jakarta.jms.*;
class Books {
    record Line(String sku, int pieces) {}
    static class Book { private String title; private List<Line> lines; private Instant printedAt; }
    @Bean
    DefaultJmsListenerContainerFactory work(DefaultJmsListenerContainerFactoryConfigurer configurer,
            ConnectionFactory connectionFactory) {
        var factory = new DefaultJmsListenerContainerFactory();
        configurer.configure(factory, connectionFactory);
        factory.setErrorHandler(error -> log.warn("failed", error));
        return factory;
    }
    @JmsListener(destination = "migrate.books", containerFactory = "work")
    public void onBook(Book book) {}
    @Scheduled(fixedRate = 60000)
    public void tick() {}
}
"""


def test_the_app_runs_its_schedule_and_gives_a_message_whose_listener_raised_again(
    cli: Cli, service: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (service / "Books.java").write_text(BOOKS, encoding="utf-8")
    result = cli.run("migrate", "--port", port(broker_url), "--emit", "app", service)
    made: Any = ModuleType("made_app")
    monkeypatch.setitem(sys.modules, "made_app", made)  # dataclasses look there for the names of their types
    exec(compile(result.stdout.replace("raise NotImplementedError", "called"), "made.py", "exec"), made.__dict__)
    seen: list[Any] = []
    arrived = threading.Event()

    def called(_: str) -> None:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "tick":
            body = '{"title": "JMS", "lines": [{"sku": "a", "pieces": 2}]}'
            made.app.sender.send("migrate.books", body)
        else:
            seen.append(caller.f_locals["book"])
            if len(seen) == 1:
                raise ValueError("the first time")
            arrived.set()

    made.called = called
    with made.app.test(broker_url):
        assert arrived.wait(WAIT)
    assert seen == [made.Book("JMS", [made.Line("a", 2)])] * 2
    assert "failed: the first time" in caplog.text, "of the error handler"


def test_check_connects_and_names_the_broker(cli: Cli, service: Path, broker_url: str) -> None:
    result = cli.run("migrate", "--check", "--json", "--port", port(broker_url), service / "application.properties")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["factories"][0]["check"].startswith("connected to ")


LABELS = """\
package shop;
class Labels {
    private final JmsTemplate jms;
    record Shipment(String shipmentId, URI label) {}
    @ConfigurationProperties("shop") record Settings(String labelQueue) {}
    @JmsListener(destination = "migrate.shipments", concurrency = "2")
    void onShipment(Shipment shipment) {
        jms.convertAndSend("migrate.labels", shipment, message -> {
            message.setStringProperty("shipment", shipment.shipmentId());
            return message;
        });
    }
    @JmsListener(destination = "#{@settings.labelQueue}") void print(TextMessage label) { printer.print(label); }
    @Bean MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        return converter;
    }
}
"""


def test_a_method_that_only_sends_sends_as_it_did_in_java(
    cli: Cli, service: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code runs as it is, and its messages have the settings of the template."""
    (service / "Labels.java").write_text(LABELS, encoding="utf-8")
    with (service / "application.properties").open("a", encoding="utf-8") as file:
        file.write(
            "spring.jms.template.priority=7\nspring.jms.template.time-to-live=1h\nshop.label-queue=migrate.print\n"
        )
    result = cli.run("migrate", "--port", port(broker_url), "--emit", "app", service)
    (service / "labels_service.py").write_text(result.stdout, encoding="utf-8")
    monkeypatch.chdir(service)
    monkeypatch.delitem(sys.modules, "labels_service", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert "queue migrate.print" in cli.ok("listeners", "labels_service:app")
    made: Any = sys.modules.pop("labels_service")
    monkeypatch.setitem(sys.modules, "labels_service", made)  # until the end of the test
    with made.app.test(broker_url), ConnectionFactory(broker_url).create_context() as context:
        consumer = context.create_consumer(context.create_queue("migrate.labels"))
        made.app.sender.send("migrate.shipments", made.Shipment("S1", "s3://labels/1"))
        label = consumer.receive(timeout=WAIT)
    assert label is not None
    assert json.loads(label.body) == {"shipmentId": "S1", "label": "s3://labels/1"}
    assert dict(label.properties).items() >= {"_type": "shop.Labels$Shipment", "shipment": "S1"}.items()
    assert (label.priority, label.expiration is None) == (7, False)
