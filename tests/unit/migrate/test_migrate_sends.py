"""`--emit app`: each send has the settings of its template, and what is left to do stands at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from migrate_support import of_text, row
from test_migrate_app import made

from pyjmsack import DeliveryMode, MapMessage
from pyjmsack.cli.migrate import migrate as command
from pyjmsack.migrate import Findings, Settings, Verdict, as_app, as_toml, migrate, open_text

BOOT = """\
spring.artemis.broker-url=tcp://a:61616
spring.jms.template.default-destination=audit
spring.jms.template.delivery-mode=non_persistent
spring.jms.template.priority=6
spring.jms.template.time-to-live=2m
spring.jms.template.delivery-delay=500ms
spring.jms.template.receive-timeout=4s
shop.names.order-queue=${ORDERS:orders}
"""
JAVA = """\
package shop;
class Sends {
    private final JmsTemplate jms;
    private final Names names;
    void first(Order order) { this.jms.convertAndSend(names.getOrderQueue(), order, m -> {
        m.setStringProperty("region", order.region());
        m.setIntProperty("tries", 3);
        m.setJMSCorrelationID("c-1");
        return m;
    }); }
    void second(Order order) { jms.convertAndSend(order); }
    void third() { jms.send(new ActiveMQTopic("news"), s -> s.createTextMessage("hello")); }
    String ask(String code, JmsMessagingTemplate messaging) {
        return messaging.convertSendAndReceive("quotes", code, Map.of("a", "b"), String.class);
    }
    @Bean MappingJackson2MessageConverter json() {
        var converter = new MappingJackson2MessageConverter();
        converter.setTypeIdPropertyName("_type");
        return converter;
    }
    record Order(String id, String region) {}
    @ConfigurationProperties(prefix = "shop.names") record Names(String orderQueue) {}
}
"""


class Recorder:
    """Takes the place of the sender of an app."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **how: self.calls.append((name, given, how))


def found(folder: Path, java: str = JAVA, boot: str = BOOT) -> Findings:
    """What is found in a source and in the properties of Spring Boot."""
    (folder / "Sends.java").write_text(java)
    (folder / "application.properties").write_text(boot)
    return migrate([str(folder)], Settings(), [])


def sender_of(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Record what the code sends."""
    recorder = Recorder()
    monkeypatch.setattr(names["app"], "sender", recorder)
    return recorder


def test_the_settings_of_spring_boots_template_are_arguments_of_each_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were in the report only, so that messages of the generated service never expired."""
    names = made(as_app(found(tmp_path)), monkeypatch)
    sender = sender_of(names, monkeypatch)
    order = names["Order"]("7", "EU")
    names["first"](order)
    names["second"](order)
    names["third"]()
    how = {
        "delivery_mode": DeliveryMode.NON_PERSISTENT, "priority": 6, "time_to_live": 120, "delivery_delay": 0.5,
    }  # fmt: skip
    assert sender.calls == [
        ("send", ("orders", order), how | {"properties": {"region": "EU", "tries": 3}, "correlation_id": "c-1"}),
        ("send", ("audit", order), how),
        ("send", ("news", "hello"), how | {"topic": True}),
    ]


def test_a_request_has_the_time_out_of_the_template_and_says_what_it_cannot_have(tmp_path: Path) -> None:
    code = as_app(found(tmp_path))
    assert "'quotes'" in code
    assert "timeout=4," in code
    assert "wanted=str," in code
    told = row(found(tmp_path), "messaging.convertSendAndReceive")
    assert (told.verdict, told.why) == (
        Verdict.BY_HAND,
        "app.sender.request has no argument delivery_mode; app.sender.request has no argument delivery_delay",
    )


def test_a_template_without_qos_sends_without_priority_and_time_to_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java ignores the three without the switch. The delay of the delivery has none."""
    findings = found(tmp_path, boot=f"{BOOT}spring.jms.template.qos-enabled=false\nspring.jms.pub-sub-domain=true\n")
    names = made(as_app(findings), monkeypatch)
    sender = sender_of(names, monkeypatch)
    names["second"](names["Order"]("7", "EU"))
    assert sender.calls[0][2] == {"topic": True, "delivery_delay": 0.5}
    assert row(findings, "spring.jms.template.priority").verdict is Verdict.IGNORED
    assert "app.sender.send(..., topic=True)" in row(findings, "spring.jms.pub-sub-domain").python


BEANS = """\
class Sends {
    @Bean ActiveMQQueue auditQueue() { return new ActiveMQQueue("audit"); }
    @Bean JmsTemplate news(ConnectionFactory factory) {
        JmsTemplate template = new JmsTemplate(factory);
        template.setPubSubDomain(true);
        template.setTimeToLive(1000);
        template.setDeliveryDelay(2000);
        return template;
    }
    @Bean JmsTemplate work(ConnectionFactory factory) {
        JmsTemplate template = new JmsTemplate(factory);
        template.setExplicitQosEnabled(true);
        template.setTimeToLive(1000);
        template.setDeliveryPersistent(false);
        template.setDefaultDestination(auditQueue());
        return template;
    }
    @Qualifier("work") JmsTemplate jms;
    private JmsTemplate news, other, own;
    void first(Map<String, Object> body) { jms.convertAndSend(auditQueue, body); }
    void second(String text) { news.convertAndSend("prices", text); }
    void third(JmsTemplate other) { other.convertAndSend("prices", 1); }
    void fourth(JmsTemplate own) {
        own = new JmsTemplate(factory);
        own.setPubSubDomain(true);
        own.convertAndSend("a", 1);
    }
}
"""


def test_the_settings_of_a_template_that_is_a_bean_are_those_of_the_named_bean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = found(tmp_path, BEANS)
    names = made(as_app(findings), monkeypatch)
    sender = sender_of(names, monkeypatch)
    names["first"]({"a": 1})
    names["second"]("hello")
    (_, (first, body), how), (_, second, of_news) = sender.calls
    assert (first, how) == ("audit", {"delivery_mode": DeliveryMode.NON_PERSISTENT, "time_to_live": 1})
    assert isinstance(body, MapMessage), "Java sends a MapMessage without a converter of JSON"
    assert (second, of_news) == (("prices", "hello"), {"topic": True, "delivery_delay": 2})
    assert (row(findings, "news.timeToLive").verdict, row(findings, "work.timeToLive").verdict) == (
        Verdict.IGNORED,
        Verdict.CHANGED,
    )
    assert row(findings, "news.pubSubDomain").python == "app.sender.send(..., topic=True)"
    assert "several beans may be the template (news, work)" in row(findings, "other.convertAndSend").why
    assert "app.sender.send('a', 1, topic=True)" in as_app(findings)


LEFT = """\
class Left {
    @JmsListener(destination = "a" + name(), concurrency = "3") void nameless(@Valid Order order) { }
    @Transactional
    @JmsListener(destination = "q")
    void onOrder(Order order, @Header(name = "n", defaultValue = "x") int n) {
        jms.convertAndSend(name(), order, this::enrich);
        JmsTemplate jms = null;
        jms.execute(session -> null);
        JmsClient client = null;
        client.destination("log").withTimeToLive(1000).send("x");
    }
    @Scheduled(cron = "0 0 7 * * MON") void monday() { }
    @Bean DefaultJmsListenerContainerFactory work() {
        var factory = new DefaultJmsListenerContainerFactory();
        factory.setTransactionManager(manager);
        return factory;
    }
    record Order(@NotBlank String id, @Nullable String note) { Order { id = id.strip(); } }
}
"""


def test_what_is_left_to_do_stands_at_its_place_and_on_stderr(tmp_path: Path) -> None:
    """Nothing is dropped in silence."""
    boot = f"{BOOT}spring.jackson.property-naming-strategy=SNAKE_CASE\n"
    findings = found(tmp_path, LEFT, boot)
    left = [one for one in findings.rows if one.verdict.open]
    ran = CliRunner().invoke(command, ["--emit", "app", str(tmp_path)])
    comments = " ".join(line.lstrip(" #") for line in ran.stdout.splitlines() if line.lstrip().startswith("#"))
    for one in left:
        assert str(one.place) in comments, one
        assert (one.why in comments, f"left: {open_text(one)}" in ran.stderr) == (True, True), one
    assert {"@Valid", "@Transactional", "@Scheduled", "jms.execute", "Order", "work.transactionManager"} <= {
        one.key for one in left
    }
    assert "# @app.listener('\"a\" + name ( )', concurrency='1-3', retry=Retry(delay=0))\n# def nameless(" in ran.stdout
    body = ran.stdout.partition("def on_order(")[2].partition("\n\n\n")[0]
    wanted = ("@Transactional", "this::enrich", "jms.execute", "Header('n')", 'withTimeToLive(1000).send("x")')
    assert all(each in body for each in wanted)
    assert "def monday() -> None:" in ran.stdout


def test_a_method_with_two_listeners_has_the_same_code_in_both(tmp_path: Path) -> None:
    java = (
        'class L { JmsTemplate jms; @JmsListeners({@JmsListener(destination = "a"), @JmsListener(destination = "b")})'
        ' void f(String body) { jms.convertAndSend("c", body); } }'
    )
    assert as_app(found(tmp_path, java)).count("app.sender.send(") == 2


def test_components_of_a_record_that_may_be_missing_have_a_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message without them, which Java takes, was an error of the listener."""
    java = """\
@JmsListener(destination = "a") void a(A a, MessageHeaders headers) {}
@JmsListener(destination = "b") void b(Locale other, @Payload B b) {}
record A(String x, @Nullable String y, int z) {}
@JsonInclude(JsonInclude.Include.NON_NULL) public record B(String x) {}
"""
    findings = found(tmp_path, java)
    assert "only one parameter gets the body" in row(findings, "other").why
    names = made(as_app(findings), monkeypatch)
    assert (names["A"]("x").y, names["A"]("x").z, names["B"]().x) == (None, 0, None)
    assert as_app(findings).count("# Records of Java take JSON without some of their components") == 1


def test_the_body_of_a_message_of_spring_is_a_parameter_of_its_own(tmp_path: Path) -> None:
    """The parameter was the message, and its body was never read as that class."""
    code = as_app(found(tmp_path, '@JmsListener(destination = "q") void f(Message<A> event) {} record A(URI x) {}'))
    assert "def f(event: A, message: Message) -> None:" in code
    assert "    x: str\n" in code, "a URI is a text in JSON"


def test_a_string_is_sent_as_jackson_sends_one(tmp_path: Path) -> None:
    """A Java service with that converter refuses a text without the type property."""
    java = JAVA.replace("jms.convertAndSend(order);", 'jms.convertAndSend("q", "done");')
    code = as_app(found(tmp_path, java))
    assert "json.dumps('done')," in code
    assert "properties={'_type': 'java.lang.String'}," in code


def test_a_secret_that_a_message_carries_is_not_written(tmp_path: Path) -> None:
    java = JAVA.replace('setJMSCorrelationID("c-1")', 'setStringProperty("apiKey", "s3cret")')
    findings = found(tmp_path, java)
    assert "s3cret" not in as_app(findings)
    assert "s3cret" not in repr(findings.rows)
    assert "'apiKey': ...," in as_app(findings).replace("}", ",")


def test_answers_of_a_listener_of_a_topic_go_to_a_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They went to a queue of that name. An unknown name is left to the user, and is not left out in silence."""
    java = """\
@JmsListener(destination = "a") @SendTo("b") String onA(String body) { return body; }
@JmsListener(destination = "c", subscription = "s") @SendTo("${reply:d}") String onC(String body) { return body; }
@JmsListener(destination = "e") @SendTo(name()) String onE(String body) { return body; }
"""
    findings = found(tmp_path, java)
    listeners = made(as_app(findings), monkeypatch)["app"].listeners
    assert (listeners["a"].reply_to.name, listeners["a"].reply_to.is_topic) == ("b", False)
    assert (listeners["c"].reply_to.name, listeners["c"].reply_to.is_topic) == ("d", True)
    assert listeners["e"].reply_to is None
    assert [one.verdict for one in findings.rows if one.key == "@SendTo"][-1] is Verdict.BY_HAND


def test_what_changes_the_json_of_a_class_and_a_class_that_no_source_has_are_said(tmp_path: Path) -> None:
    java = """\
@JmsListener(destination = "q") void f(Price price) {}
@JmsListener(destination = "r") void g(Event event) {}
@JsonTypeInfo(use = Id.NAME) record Price(@JsonFormat(pattern = "yyyy") Instant at) {}
record Other(@JsonFormat(pattern = "yyyy") Instant at) {}
"""
    findings = found(tmp_path, java, f"{BOOT}spring.jms.listener.auto-startup=false\n")
    changed = [one.value for one in findings.rows if one.key == "Price"]
    assert [each.split()[0] for each in changed] == ["@JsonTypeInfo", "@JsonFormat"]
    assert row(findings, "Event").verdict is Verdict.BY_HAND
    assert as_app(findings).count("autostart=False") == 2


def test_an_expression_of_spring_that_reads_the_configuration_has_its_value(tmp_path: Path) -> None:
    java = JAVA.replace(
        "void third", '@JmsListener(destination = "#{@names.orderQueue}") void on(String s) {} void third'
    )
    assert [one.destination for one in found(tmp_path, java).listeners] == ["orders"]


@pytest.mark.parametrize(
    ("keys", "mode"),
    [
        ("spring.jms.listener.session.acknowledge-mode=client\n", "transacted"),
        ("spring.jms.listener.acknowledge-mode=client\n", "transacted"),
        ("spring.jms.listener.session.acknowledge-mode=client\nspring.jms.listener.session.transacted=false\n",
         "individual"),
    ],
)  # fmt: skip
def test_the_row_of_an_acknowledge_mode_says_the_mode_of_the_code(tmp_path: Path, keys: str, mode: str) -> None:
    """Spring Boot makes the sessions transacted whatever the mode is, unless another key says no."""
    findings = found(tmp_path, '@JmsListener(destination = "q") void f(String body) {}', BOOT + keys)
    told = next(one for one in findings.rows if one.key.endswith("acknowledge-mode"))
    assert f'mode="{mode}"' in told.python
    assert (f"mode='{mode}'" in as_app(findings)) is (mode != "transacted")


def test_the_settings_of_a_profile_are_left_to_the_user(tmp_path: Path) -> None:
    (tmp_path / "application-prod.properties").write_text("spring.jms.template.priority=9\n")
    findings = found(tmp_path)
    told = next(one for one in findings.rows if one.place.file.endswith("prod.properties"))
    assert (told.verdict, "of the profile prod" in told.why) == (Verdict.BY_HAND, True)
    assert "priority=9" not in as_app(findings).replace(open_text(told), "").replace("-> send(..., priority=9)", "")


def test_toml_says_how_a_subscription_is_kept_and_shared(tmp_path: Path) -> None:
    java = """\
@Bean DefaultJmsListenerContainerFactory feed() {
    var factory = new DefaultJmsListenerContainerFactory();
    factory.setPubSubDomain(true);
    factory.setSubscriptionDurable(true);
    factory.setSubscriptionShared(true);
    factory.setClientId("desk");
    return factory;
}
@JmsListener(destination = "prices", containerFactory = "feed", subscription = "audit") void f(String body) {}
@JmsListener(destination = "own", subscription = "mine") void g(String body) {}
"""
    text = as_toml(found(tmp_path, java))
    assert 'subscription = "audit"\ndurable = true\nshared = true\nclient_id = "desk"\n' in text
    assert 'subscription = "mine"\ndurable = true\nshared = false\nclient_id = "env:PYJMSACK_CLIENT_ID"\n' in text


@pytest.mark.parametrize(
    "java",
    [
        'class L { JmsTemplate j; void class(String a) { j.convertAndSend("q\\n\\"", a, m -> { m.setStringProperty(",'
        ' x()", "\'] + x()"); return m; }); } }',
        'class L { JmsTemplate j; void f(Lambda lambda) { j.convertAndSend("q", lambda.from()); }'
        " record Lambda(int from){} }",
        "class L { JmsTemplate j; void f() { j.convertAndSend(",
        "class L { JmsTemplate j; void f( { j.send(x -> { j.send(y -> { } ) }",
        "class L { JmsTemplate j; void f() { j.convertSendAndReceive(.class, ,); j.convertAndSend(, -> ::); j.setX() }",
    ],
)
def test_no_source_makes_code_that_is_not_python(tmp_path: Path, java: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(as_app(of_text(tmp_path, "L.java", java)), monkeypatch)


PARTNERS = """\
class Partners {
    @Bean(destroyMethod = "stop") ActiveMQConnectionFactory home() {
        return new ActiveMQConnectionFactory("tcp://home:61616", "h", "s3cret");
    }
    @Bean ActiveMQConnectionFactory partner() {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("tcp://partner:61616");
        factory.setPassword("s3cret");
        return factory;
    }
    @Bean JmsTemplate partnerTemplate(ConnectionFactory partner) { return new JmsTemplate(partner); }
    @Bean DefaultJmsListenerContainerFactory work(ConnectionFactory home) {
        var factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(home);
        factory.setReplyPubSubDomain(true);
        factory.setReplyQosSettings(new QosSettings(1, 3, 10000));
        return factory;
    }
    private final JmsTemplate partnerTemplate;
    @SendTo("done")
    @JmsListener(destination = Names.IN, containerFactory = "work", selector = \"\"\"
            country = 'AT'
              AND total > 10
            \"\"\")
    String on(Envelope<Order> envelope) { partnerTemplate.convertAndSend(Names.OUT, "x"); return ""; }
    record Envelope<T>(T body) {}
}
interface Names { String IN = "in"; String OUT = IN + ".out"; }
"""


def test_two_brokers_have_two_apps_and_two_passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second broker got the password of the first, and a template of the second one sent to the first."""
    monkeypatch.setenv("PYJMSACK_PASSWORD_PARTNER", "another")
    monkeypatch.setenv("PYJMSACK_USER_PARTNER", "p")
    findings = found(tmp_path, PARTNERS, "spring.jms.template.priority=9\n")
    code = as_app(findings)
    names = made(code, monkeypatch)
    login = {"username": "p", "password": "another"}
    assert names["partner_app"]._login.items() >= login.items()
    assert names["app"]._login["password"] == "from outside"
    assert "partner_app.sender.send('in.out', 'x')" in code
    assert row(findings, "partner.password").python == "env:PYJMSACK_PASSWORD_PARTNER"
    assert row(findings, "spring.jms.template.priority").verdict is Verdict.IGNORED, "Spring Boot makes no template"


def test_a_listener_has_the_text_block_the_constants_and_the_settings_of_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYJMSACK_PASSWORD_PARTNER", "another")
    monkeypatch.setenv("PYJMSACK_USER_PARTNER", "p")
    findings = found(tmp_path, PARTNERS, "")
    code = as_app(findings)
    listener = made(code, monkeypatch)["app"].listeners["in"]
    assert listener.settings.selector == "country = 'AT'\n  AND total > 10"
    assert (listener.reply_to.name, listener.reply_to.is_topic) == ("done", True)
    assert "priority=3, time_to_live=10)" in " ".join(line.lstrip(" #") for line in code.splitlines())
    assert row(findings, "Envelope").verdict is Verdict.BY_HAND


def test_the_parameters_of_another_language_are_left_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a parameter of Kotlin was taken for its type, and a header was left out in silence."""
    kotlin = """\
class K(private val jms: JmsTemplate) {
    @JmsListener(destination = "in") fun on(order: Order, @Header("region") region: String?) {
        jms.convertAndSend("out", order)
    }
}
"""
    findings = of_text(tmp_path, "K.kt", kotlin)
    names = made(as_app(findings), monkeypatch)
    assert names["on"].__annotations__ == {"message": "Message", "return": "None"}
    assert row(findings, "(parameters)").verdict is Verdict.BY_HAND
    assert row(findings, "convertAndSend").verdict is Verdict.BY_HAND
