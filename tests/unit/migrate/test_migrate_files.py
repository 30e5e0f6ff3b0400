"""Properties, YAML, XML and Java sources: a verdict for each key, and nothing outside the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from migrate_support import of_text, row

from pyjmsack import AckMode
from pyjmsack.migrate import Settings, Unreadable, Verdict, migrate
from pyjmsack.migrate.properties_file import read_properties
from pyjmsack.migrate.spring_xml import BEANS
from pyjmsack.migrate.xml_file import read_xml
from pyjmsack.migrate.yaml_file import read_yaml

ACTIVEMQ_JNDI = """\
java.naming.factory.initial = org.apache.activemq.jndi.ActiveMQInitialContextFactory
java.naming.provider.url = failover:(tcp://a:61616,tcp://b:61616)?maxReconnectAttempts=5
java.naming.security.principal = guest
java.naming.security.credentials = s3cret
connectionFactoryNames = cf, queueCF
prefetchPolicy.queuePrefetch = 10
queue.orders = app.orders
topic.prices = topic://app.prices
"""
ARTEMIS_JNDI = """\
java.naming.factory.initial=org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory
connectionFactory.ConnectionFactory=(tcp://a:61616,tcp://b:61617)?ha=true&reconnectAttempts=-1&retryInterval=500\\
  &consumerWindowSize=0
queue.queue/orders=orders
"""
QPID_JNDI = """\
java.naming.factory.initial = org.apache.qpid.jms.jndi.JmsInitialContextFactory
connectionfactory.factory = amqps://${HOST:localhost}:5671?transport.trustStorePassword=s3cret&jms.prefetchPolicy.all=5
property.connectionfactory.factory.username = guest
property.connectionfactory.factory.password = s3cret
queue.q = orders
topic.t = prices
"""


def test_jndi_of_activemq_becomes_a_factory_with_its_properties(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "jndi.properties", ACTIVEMQ_JNDI)
    factory = findings.factories[0]
    assert factory.url == (
        "failover:(amqp://a:5672,amqp://b:5672)?maxReconnectAttempts=5&jms.prefetchPolicy.queuePrefetch=10"
        "&profile=activemq"
    )
    assert (factory.username, factory.secrets) == ("guest", {"jms.password": "PYJMSACK_PASSWORD"})
    assert row(findings, "topic.prices").python == 'create_topic("app.prices")'
    assert "s3cret" not in repr(findings)


def test_jndi_of_artemis_keeps_its_waits_and_windows_in_our_words(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "jndi.properties", ARTEMIS_JNDI)
    assert findings.factories[0].url == (
        "failover:(amqp://a:5672,amqp://b:5671)?failover.maxReconnectAttempts=-1&failover.initialReconnectDelay=500"
        "&failover.reconnectDelay=500&jms.prefetchPolicy.all=0&profile=artemis"
    ).replace("b:5671", "b:5672")
    assert row(findings, "queue.queue/orders").python == 'create_queue("orders")'


def test_jndi_of_qpid_takes_placeholders_and_properties_of_one_factory(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "jndi.properties", QPID_JNDI, variables={"HOST": "mq1"})
    factory = findings.factories[0]
    assert factory.url == "amqps://mq1:5671?jms.prefetchPolicy.all=5&profile=qpid"
    assert factory.secrets.keys() == {"jms.password", "transport.trustStorePassword"}
    assert "s3cret" not in repr(findings)


BOOT = """\
spring.application.name=shop
spring.activemq.broker-url=tcp://${BROKER_HOST:localhost}:61616?jms.prefetchPolicy.all=1
spring.activemq.user=admin
spring.activemq.password=s3cret
spring.activemq.closeTimeout=5s
spring.activemq.pool.enabled=true
spring.jms.listener.acknowledge-mode=client
spring.jms.template.time-to-live=PT1M
spring.jms.template.recieve-timeout=5s
"""


def test_each_key_of_spring_boot_has_a_verdict_and_a_reason(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "application.properties", BOOT)
    assert (
        findings.factories[0].url
        == "amqp://localhost:5672?jms.prefetchPolicy.all=1&jms.closeTimeout=5000&profile=activemq"
    )
    assert row(findings, "spring.activemq.closeTimeout").python == "jms.closeTimeout=5000"
    assert row(findings, "spring.activemq.pool.enabled").verdict is Verdict.IGNORED
    assert row(findings, "spring.jms.template.time-to-live").python == "send(..., time_to_live=60)"
    assert row(findings, "spring.jms.listener.acknowledge-mode").python == 'app.listener(..., mode="transacted")'
    assert (
        "did you mean spring.jms.template.receive-timeout?" in row(findings, "spring.jms.template.recieve-timeout").why
    )
    assert findings.other_keys == 1
    assert "s3cret" not in repr(findings)


def test_the_profiles_of_a_yaml_file_are_factories_of_their_own(tmp_path: Path) -> None:
    text = """\
spring:
  activemq:
    user: app
    broker-url: tcp://dev:61616
---
spring:
  config: {activate: {on-profile: prod}}
  activemq:
    broker-url: failover:(tcp://p1:61616,tcp://p2:61616)
"""
    findings = of_text(tmp_path, "application.yml", text)
    assert [factory.name for factory in findings.factories] == ["activemq_factory", "prod_factory"]
    assert [factory.username for factory in findings.factories] == ["app", "app"]
    assert findings.factories[1].url.startswith("failover:(amqp://p1:5672,amqp://p2:5672)")


def test_a_placeholder_without_a_value_is_asked_for_by_name(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "application.properties", "spring.artemis.broker-url=tcp://${MQ}:61616\n")
    assert row(findings, "spring.artemis.broker-url").verdict is Verdict.BY_HAND
    assert "-D MQ=VALUE" in row(findings, "spring.artemis.broker-url").why


SPRING = """\
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:p="http://www.springframework.org/schema/p"
       xmlns:amq="http://activemq.apache.org/schema/core" xmlns:j="http://www.springframework.org/schema/jms">
  <bean id="real" class="org.apache.activemq.ActiveMQConnectionFactory" p:userName="u">
    <property name="brokerURL" value="tcp://h:61616"/>
    <property name="password"><value>s3cret</value></property>
    <property name="redeliveryPolicy">
      <bean class="org.apache.activemq.RedeliveryPolicy"><property name="maximumRedeliveries" value="3"/></bean>
    </property>
  </bean>
  <bean id="pool" class="org.apache.activemq.jms.pool.PooledConnectionFactory">
    <property name="connectionFactory" ref="real"/><property name="maxConnections" value="8"/>
  </bean>
  <amq:queue id="orders" physicalName="shop.orders"/>
  <bean id="receiver" class="org.springframework.jms.listener.DefaultMessageListenerContainer">
    <property name="connectionFactory" ref="pool"/>
    <property name="destination" ref="orders"/>
    <property name="sessionTransacted" value="true"/>
    <property name="concurrentConsumers" value="2"/>
    <property name="maxConcurrentConsumer" value="9"/>
  </bean>
  <j:listener-container connection-factory="pool" acknowledge="auto" destination-type="durableTopic">
    <j:listener destination="prices" subscription="desk" selector="x = 1" ref="bean"/>
  </j:listener-container>
  <bean id="other" class="com.example.Other"/>
</beans>
"""


USER, LOGIN, URL = ("u", "userName"), ("s3:cret", "password"), ("tcp://h:61616", "brokerURL")


@pytest.mark.parametrize("arguments", [(USER, LOGIN, URL), (URL, USER, LOGIN)], ids=["url last", "url first"])
@pytest.mark.parametrize(
    ("attributes", "argument"),
    [
        ("", '<constructor-arg value="{value}"/>'),
        ("", '<constructor-arg index="{index}" value="{value}"/>'),
        ("", '<constructor-arg name="{name}"><value>{value}</value></constructor-arg>'),
        ('c:_{index}="{value}"', ""),
        ('c:{name}="{value}"', ""),
    ],
    ids=["in order", "by index", "by name", "short by index", "short by name"],
)
def test_a_password_in_a_constructor_of_spring_is_a_secret(
    tmp_path: Path, arguments: tuple[tuple[str, str], ...], attributes: str, argument: str
) -> None:
    """The user name comes before the password, wherever the URL stands."""
    each = [{"index": index, "value": value, "name": name} for index, (value, name) in enumerate(arguments)]
    start, inner = (" ".join(part.format(**one) for one in each) for part in (attributes, argument))
    spaces = "".join(f' xmlns{p}="http://www.springframework.org/schema/{s}"' for p, s in (("", "beans"), (":c", "c")))
    bean = f'<bean id="f" class="org.apache.activemq.ActiveMQConnectionFactory" {start}>{inner}</bean>'
    findings = of_text(tmp_path, "context.xml", f"<beans{spaces}>{bean}</beans>")
    (factory,) = findings.factories
    assert factory.url == "amqp://h:5672?profile=activemq"
    assert (factory.username, factory.secrets) == ("u", {"jms.password": "PYJMSACK_PASSWORD"})
    assert "3:cret" not in repr(findings.rows)


@pytest.mark.parametrize("index", ["", 'index="0" ', f'index="{"9" * 5000}" '], ids=["none", "0", "absurd"])
def test_a_url_without_parentheses_in_a_constructor_of_spring_is_the_url(tmp_path: Path, index: str) -> None:
    inner = f'<constructor-arg {index}value="failover:tcp://h:61616"/>'
    bean = f'<bean id="f" class="org.apache.activemq.ActiveMQConnectionFactory">{inner}</bean>'
    (factory,) = of_text(tmp_path, "context.xml", f'<beans xmlns="{BEANS}">{bean}</beans>').factories
    assert factory.url.startswith("failover:(amqp://h:5672)")
    assert (factory.username, factory.secrets) == ("", {})


def test_springs_xml_gives_factories_and_listeners_through_pools_and_prefixes(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "context.xml", SPRING)
    factory = findings.factories[0]
    assert factory.url == "amqp://h:5672?jms.redeliveryPolicy.maximumRedeliveries=3&profile=activemq"
    assert (factory.username, factory.secrets) == ("u", {"jms.password": "PYJMSACK_PASSWORD"})
    receiver, prices = findings.listeners
    assert (receiver.destination, receiver.mode, receiver.factory) == (
        "shop.orders",
        AckMode.SESSION_TRANSACTED,
        "real",
    )
    assert (prices.topic, prices.durable, prices.subscription, prices.selector) == (True, True, "desk", "x = 1")
    assert prices.mode is AckMode.AUTO_ACKNOWLEDGE
    assert "did you mean maxConcurrentConsumers?" in row(findings, "receiver.maxConcurrentConsumer").why
    assert "s3cret" not in repr(findings)


def test_the_brokers_own_file_says_which_port_speaks_amqp(tmp_path: Path) -> None:
    (tmp_path / "broker.xml").write_text(
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><acceptors>'
        '<acceptor name="all">tcp://0.0.0.0:61616?protocols=CORE;keyStorePassword=s3cret</acceptor>'
        '<acceptor name="amqp">tcp://0.0.0.0:5999?protocols=AMQP</acceptor></acceptors>'
        "<cluster-password>s3cret</cluster-password></core></configuration>",
        encoding="utf-8",
    )
    (tmp_path / "jndi.properties").write_text(ARTEMIS_JNDI, encoding="utf-8")
    findings = migrate([str(tmp_path)], Settings())
    assert findings.factories[0].url.startswith("failover:(amqp://a:5999,")
    assert row(findings, "acceptor amqp").python == "amqp://HOST:5999"
    assert "s3cret" not in repr(findings)


def test_a_broker_without_amqp_is_told_what_to_add(tmp_path: Path) -> None:
    text = (
        '<beans xmlns="http://www.springframework.org/schema/beans">'
        '<broker xmlns="http://activemq.apache.org/schema/core"><transportConnectors>'
        '<transportConnector name="openwire" uri="tcp://0.0.0.0:61616?x=1"/></transportConnectors></broker></beans>'
    )
    found = row(of_text(tmp_path, "activemq.xml", text), "AMQP connector")
    assert found.verdict is Verdict.BY_HAND
    assert '<transportConnector name="amqp"' in found.why


JAVA = """\
import javax.jms.*;
class Orders {
    @JmsListener(
        destination = "${orders.queue:orders}", selector = "region = 'EU'", concurrency = "3-10")
    public void receive(Message m) { producer.setTimeToLive(1000); }
    // producer.setPriority(4);
    @JmsListener(destination = Names.QUEUE) void other() {}
    void send() { session.createQueue("a?consumer.prefetchSize=1"); m.setLongProperty("_AMQ_SCHED_DELIVERY", t); }
}
"""


def test_java_sources_are_an_inventory_with_file_and_line(tmp_path: Path) -> None:
    findings = of_text(tmp_path, "Orders.java", JAVA)
    listener = findings.listeners[0]
    assert (listener.destination, listener.selector, listener.concurrency) == ("orders", "region = 'EU'", "3-10")
    assert [(one.place.line, one.key) for one in findings.rows] == [
        (3, "@JmsListener"),
        (3, "@JmsListener.selector"),
        (5, "setTimeToLive"),
        (7, "@JmsListener"),
        (8, "createQueue"),
        (8, "_AMQ_SCHED_DELIVERY"),
    ]
    assert "seconds" in row(findings, "setTimeToLive").why


DESTINATIONS = [
    ("queue://a", "classic-6", 'create_queue("a")', Verdict.CHANGED),
    ("dynamicTopics/a", "artemis", 'create_topic("a")', Verdict.CHANGED),
    ("a.>", "artemis", 'create_queue("a.#")', Verdict.CHANGED),
    ("a.#", "classic-5", 'create_queue("a.>")', Verdict.CHANGED),
    ("a,b", "classic-5", "", Verdict.BY_HAND),
    ("Consumer.c.VirtualTopic.x", "artemis", "", Verdict.BY_HAND),
    ("Consumer.c.VirtualTopic.x", "classic-6", 'create_queue("Consumer.c.VirtualTopic.x")', Verdict.CHANGED),
    ("a?customer.prefetchSize=1", "", 'create_queue("a")', Verdict.CHANGED),
    ("a?consumer.prefetchSize=-1", "", "", Verdict.BY_HAND),
]


@pytest.mark.parametrize(("name", "broker", "python", "verdict"), DESTINATIONS)
def test_a_destination_is_written_as_the_broker_reads_it(
    tmp_path: Path, name: str, broker: str, python: str, verdict: Verdict
) -> None:
    text = f"java.naming.factory.initial=x\nqueue.q={name}\n"
    found = row(of_text(tmp_path, "jndi.properties", text, broker=broker), "queue.q")
    assert (found.python, found.verdict) == (python, Verdict.SAME if f'"{name}"' in python else verdict)


def test_properties_are_read_as_java_reads_them() -> None:
    text = "# c\n! c\na=1\nb : 2\nc 3\nd\\ e = 4\\\n    5\nf=\\u0041\\t|\ng\n"
    assert [(one.line, one.key, one.value) for one in read_properties(text)] == [
        (3, "a", "1"),
        (4, "b", "2"),
        (5, "c", "3"),
        (6, "d e", "45"),
        (8, "f", "A\t|"),
        (9, "g", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a/>',
        '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://h/x"> %x;]><a/>',
        "<a>" * 200,
        "<a>" * 99 + "<b/>" * 200_001,
        "<a",
        "",
    ],
)
def test_xml_with_entities_or_without_end_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_xml(text.encode())


def test_xml_with_a_long_namespace_is_refused() -> None:
    """An element would need as much memory as its namespace, and a file has many elements and one namespace."""
    long = b"u" * 1_000_000
    for text in (
        b'<a xmlns="%b">' % long + b"<b/>" * 100_000 + b"</a>",
        b'<a xmlns:p="%b" ' % long + b" ".join(b'p:a%d=""' % number for number in range(100_000)) + b"/>",
        b'<!DOCTYPE a [<!ATTLIST b x CDATA "%b">]><a>' % long + b"<b/>" * 100_000 + b"</a>",
    ):
        with pytest.raises(Unreadable, match=r"namespaces of at most 200 characters; line 1|declares no attributes"):
            read_xml(text)


def test_all_elements_share_the_text_of_their_namespace() -> None:
    root = read_xml(b'<a xmlns="urn:one"><b/><c xmlns="urn:two"><d/></c><e xmlns=""/><f/></a>')
    assert [(one.name, one.namespace) for one in root.all()] == [
        ("a", "urn:one"), ("b", "urn:one"), ("c", "urn:two"), ("d", "urn:two"), ("e", ""), ("f", "urn:one"),
    ]  # fmt: skip
    assert root.children[0].namespace is root.namespace is root.children[-1].namespace


def test_a_prefix_holds_for_its_element_and_for_what_is_inside() -> None:
    root = read_xml(b'<p:a xmlns:p="urn:p" p:x="1" y="2" xml:lang="en"><b p:x="3"/><c xmlns:p="urn:q" p:x="4"/></p:a>')
    assert (root.namespace, root.name) == ("urn:p", "a")
    assert root.attributes == {"urn:p|x": "1", "y": "2", "http://www.w3.org/XML/1998/namespace|lang": "en"}
    assert [one.attributes for one in root.children] == [{"urn:p|x": "3"}, {"urn:q|x": "4"}]
    for text in (b"<p:a/>", b'<a p:x="1"/>', b'<a><b xmlns:p="urn:p"/><p:c/></a>'):
        with pytest.raises(Unreadable, match="a prefix at line 1 has none"):
            read_xml(text)


def test_a_document_type_that_names_a_file_elsewhere_is_not_loaded() -> None:
    text = b'<!DOCTYPE beans PUBLIC "-//SPRING//DTD BEAN//EN" "http://nowhere.invalid/x.dtd"><beans><bean/></beans>'
    assert read_xml(text).children[0].name == "bean"


def test_yaml_whose_aliases_unfold_without_end_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(Unreadable, match="100000 keys"):
        read_yaml("\n".join(lines))


@pytest.mark.parametrize("empty", ["[]", "{}"])
def test_yaml_whose_aliases_unfold_to_nothing_without_end_is_refused(empty: str) -> None:
    """Each level took ten times as long as the level before: six levels of 350 bytes a second."""
    lines = [f"a0: &a0 [{', '.join([empty] * 10)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="1000000 nodes"):
        read_yaml("\n".join(lines))


def test_yaml_with_a_long_key_around_many_values_is_refused() -> None:
    with pytest.raises(Unreadable, match="at most 1000 characters"):
        read_yaml("? " + "k" * 100_000 + "\n: [" + "x, " * 10_000 + "x]")


@pytest.mark.parametrize("text", ["a: [", "a: !!python/object:os.system x\nb: *no", "\t- x"])
def test_what_is_no_yaml_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_yaml(text)


def test_a_file_that_is_too_large_or_missing_is_named(tmp_path: Path) -> None:
    big = tmp_path / "big.properties"
    big.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    findings = migrate([str(big), str(tmp_path / "none.xml"), str(tmp_path / "x.txt")], Settings())
    assert len(findings.unreadable) == 3
    assert "expected a file of at most" in " ".join(findings.unreadable)
