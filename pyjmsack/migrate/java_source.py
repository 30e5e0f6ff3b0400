"""Lists the places of Java and Kotlin sources that use JMS, each with its replacement in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.java_bean_rows import BeanRows, Container
from pyjmsack.migrate.java_beans import beans_of
from pyjmsack.migrate.java_bodies import complete_bodies, sent_in
from pyjmsack.migrate.java_classes import Shape, classes_of, with_bases
from pyjmsack.migrate.java_configured import configured_names, prefixes_of
from pyjmsack.migrate.java_functions import read_functions
from pyjmsack.migrate.java_listeners import read_listeners
from pyjmsack.migrate.java_schedules import read_schedules
from pyjmsack.migrate.java_templates import Template
from pyjmsack.migrate.java_tokens import Tokens, tokens_of
from pyjmsack.migrate.java_values import Known, constants_of
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.values import shown

__all__ = ["read_sources"]

_MOST_LINES: Final = 50_000
_LONGEST_LINE: Final = 2_000
_SAME: Final = Verdict.SAME
_NEW: Final = Verdict.CHANGED
_HAND: Final = Verdict.BY_HAND
_NO: Final = Verdict.REFUSED

_PATTERNS: Final[tuple[tuple[str, Verdict, str, str], ...]] = (
    (
        r"\bcreateSession\s*\(\s*(?:true|false)\b",
        _NEW,
        "create_session(AckMode....)",
        "the mode replaces the boolean argument",
    ),
    (r"\bcreateSession\s*\(", _NEW, "create_session(AckMode....)", ""),
    (r"\bcreateContext\s*\(", _NEW, "factory.create_context(AckMode....)", ""),
    (
        r"\bcreateXA\w+\s*\(|\bXAConnection\w*\b",
        _NO,
        "",
        "this library has no XA transactions; use a local transaction and an outbox table",
    ),
    (r"\bsetTimeToLive\s*\(", _NEW, "producer.time_to_live = seconds", "seconds in Python, milliseconds in Java"),
    (r"\bsetDeliveryDelay\s*\(", _NEW, "producer.delivery_delay = seconds", "seconds in Python"),
    (r"\bsetDeliveryMode\s*\(", _NEW, "producer.delivery_mode = DeliveryMode....", "an attribute"),
    (r"\bsetPriority\s*\(", _NEW, "producer.priority = n", "an attribute"),
    (r"\bsetDisableMessage(?:ID|Timestamp)\s*\(", _NEW, "producer.disable_message_id = True", "an attribute"),
    (
        r"\bsetExceptionListener\s*\(",
        _NEW,
        "connection.exception_listener = f",
        "set the attribute; the library calls f(error)",
    ),
    (
        r"\bsetMessageListener\s*\(",
        _NEW,
        "consumer.message_listener = f",
        "set the attribute; the library calls f(message)",
    ),
    (r"\bsetClientID\s*\(", _NEW, "ConnectionFactory(url, client_id=...)", "or connection.client_id = ..."),
    (r"\bsetRedeliveryPolicy\s*\(", _NEW, "jms.redeliveryPolicy.* in the URL", ""),
    (r"\bsetPrefetchPolicy\s*\(", _NEW, "jms.prefetchPolicy.* in the URL", ""),
    (r"\bsetTrust(?:ed|All)Packages\s*\(", Verdict.IGNORED, "", "bytes are never made into Java objects"),
    (
        r"\bObjectMessage\b|\bcreateObjectMessage\s*\(",
        _HAND,
        "register_object_codec",
        "agree on JSON instead of Java objects",
    ),
    (r"\bcreateMapMessage\s*\(", _NEW, "send({...}) or create_map_message", "a mapping becomes a MapMessage"),
    (r"\bcreateStreamMessage\s*\(", _NEW, "send([...]) or create_stream_message", "a list becomes a StreamMessage"),
    (
        r"\bBlobMessage\b",
        _NO,
        "",
        "this library has no blob messages; keep large files in a store, and send their address",
    ),
    (r"\breceive\s*\(\s*\d+[lL]?\s*\)", _NEW, "receive(timeout=seconds)", "seconds in Python, milliseconds in Java"),
    (r"\breceiveNoWait\s*\(", _NEW, "receive_nowait()", ""),
    (r"\bcreateDurable(?:Subscriber|Consumer)\s*\(", _NEW, "create_durable_consumer(topic, name)", ""),
    (r"\bcreateShared(?:Durable)?Consumer\s*\(", _NEW, "create_shared_consumer(topic, name)", ""),
    (r"\bcreateBrowser\s*\(", _NEW, "create_browser(queue)", ""),
    (r"\b(?:Queue|Topic)Requestor\b", _NEW, "QueueRequestor, TopicRequestor", ""),
    (r"\bINDIVIDUAL_ACKNOWLEDGE\b", _NEW, "AckMode.INDIVIDUAL_ACKNOWLEDGE", ""),
    (r"\bPRE_ACKNOWLEDGE\b", _NEW, "AckMode.NO_ACKNOWLEDGE", "a crash loses the messages that the broker sent ahead"),
    (
        r"_AMQ_SCHED_DELIVERY|\bHDR_SCHEDULED_DELIVERY_TIME\b",
        _NEW,
        "send(..., delivery_delay=seconds)",
        "Java sets a property for this delay",
    ),
    (
        r"AMQ_SCHEDULED_(?:CRON|PERIOD|REPEAT)|ScheduledMessage",
        _NO,
        "",
        "a message is delivered once, without a schedule: send the message again at each time",
    ),
    (
        r"AMQ_SCHEDULED_DELAY",
        _NEW,
        "send(..., delivery_delay=seconds)",
        "for Classic, write broker.scheduler=true into the URL",
    ),
    (
        r"_AMQ_DUPL_ID|\bHDR_DUPLICATE_DETECTION_ID\b",
        _NEW,
        'message.properties["_AMQ_DUPL_ID"]',
        "Artemis drops the second copy of a send",
    ),
    (r"_AMQ_GROUP_ID|\bJMSXGroupID\b", _SAME, 'message.properties["JMSXGroupID"]', "set before the send"),
    (r"_AMQ_LVQ_NAME|\bHDR_LAST_VALUE_NAME\b", _SAME, 'message.properties["_AMQ_LVQ_NAME"]', "set before the send"),
    (
        r"_AMQ_ORIG_\w+",
        _SAME,
        'message.properties["_AMQ_ORIG_QUEUE"]',
        "Artemis sets this property in messages of a dead-letter queue",
    ),
    (
        r"_AMQ_\w+",
        _HAND,
        "message.properties[...]",
        "Artemis reads this property: look whether Artemis also reads the property over AMQP",
    ),
    (r"\bInitialContext\s*\(", Verdict.IGNORED, "ConnectionFactory(url)", "pyjmsack has no JNDI"),
    (
        r"\bnew\s+(?:\w+\.)*(?:ActiveMQ\w*ConnectionFactory|JmsConnectionFactory)\s*\(",
        _NEW,
        "ConnectionFactory(url)",
        "",
    ),
    (r"\bnew\s+(?:\w+\.)*\w*Pool(?:ed)?\w*ConnectionFactory\s*\(", Verdict.IGNORED, "", "no pool is needed"),
    (r"\bnew\s+CachingConnectionFactory\s*\(", Verdict.IGNORED, "", "no pool is needed"),
    (
        r"\bnew\s+JmsTemplate\s*\(|\bJms(?:Messaging)?Template\b(?=\s+\w+\s*[;,)=])",
        _NEW,
        "app.sender of pyjmsack.App, or producer.send(body, destination)",
        "a send within a listener joins the transaction of the listener",
    ),
    (
        r"\bconvertAndSend\s*\(",
        _HAND,
        "app.sender.send(destination, body, properties=..., correlation_id=...)",
        "a JsonConverter writes JSON with the type property; a post-processor becomes these arguments",
    ),
    (
        r"\b(?:convertSendAndReceive|sendAndReceive)\s*\(",
        _HAND,
        "app.sender.request(destination, body, timeout=seconds)",
        "if no reply comes in time, the call raises RequestTimedOutException, and does not return null",
    ),
    (
        r"\breceiveAndConvert\s*\(",
        _HAND,
        "consumer.receive_body(type, timeout=seconds)",
        "keep the consumer: Spring opens one for each call",
    ),
    (r"\bnew\s+(?:\w+\.)*EmbeddedActiveMQ\s*\(|\bnew\s+BrokerService\s*\(", _NEW, "pyjmsack.broker", "in tests"),
    (r"\bnew\s+ActiveMQQueue\s*\(", _NEW, "session.create_queue(name)", ""),
    (r"\bnew\s+ActiveMQTopic\s*\(", _NEW, "session.create_topic(name), or topic=True of a listener or send", ""),
    (
        r"\bDefaultJmsListenerContainerFactory\b(?=\s*\()|\bnew\s+\w*MessageListenerContainer\s*\(",
        _HAND,
        "arguments of app.listener",
        "this is code: the rows below show the settings that were read",
    ),
    (
        r"\bsetClientId\s*\(",
        _NEW,
        "App(url, client_id=...)",
        "or ConnectionFactory(url, client_id=...)",
    ),
    (r"\bsetConcurrency\s*\(", _NEW, 'app.listener(..., concurrency="3-10")', "the same text"),
    (
        r"\bsetPubSubDomain\s*\(",
        _NEW,
        "app.listener(..., topic=True), or app.sender.send(..., topic=True)",
        "an argument of each listener and send",
    ),
    (
        r"\bsetSubscriptionDurable\s*\(",
        _NEW,
        'app.listener(..., topic=True, subscription="name")',
        "durable by default",
    ),
    (r"\bsetSubscriptionShared\s*\(", _NEW, "app.listener(..., shared=True)", "several consumers divide the messages"),
    (r"\bsetSessionTransacted\s*\(", _NEW, 'app.listener(..., mode="transacted")', "the default of an App"),
    (r"\bsetSessionAcknowledgeMode\s*\(", _HAND, "app.listener(..., mode=...)", "see docs/migrate.md: Spring's modes"),
    (r"\bsetErrorHandler\s*\(", _NEW, "app.listener(..., on_error=f)", "f(error, message)"),
    (
        r"\bset(?:BackOff|RecoveryInterval)\s*\(",
        Verdict.IGNORED,
        "",
        "an App waits 1 to 30 s between its tries to connect",
    ),
    (
        r"\bsetReceiveTimeout\s*\(",
        _NEW,
        "timeout=seconds of each request or receive",
        "seconds in Python; a listener needs no time-out",
    ),
    (
        r"\bset(?:TypeIdPropertyName|TypeIdMappings)\s*\(",
        _NEW,
        'JsonConverter("_type", {"order": Order})',
        "the first argument is the property, and the second is the mapping, with the same names as in Java",
    ),
    (r"\bJMSXDeliveryCount\b", _SAME, "message.delivery_count", "1 is the first delivery"),
    (r"@Header\s*\(", _NEW, 'Annotated[str, Header("region")]', "see the parameters in the generated App"),
    (r"@Headers\b", _NEW, "message: Message, and message.properties", "headers of JMS are attributes of a message"),
    (
        r"\bJmsListenerEndpointRegistry\b(?=\s+\w+\s*[;,)=])",
        _NEW,
        'app.listeners["name"].stop(), .start(), .running',
        "the id of @JmsListener is the name",
    ),
    (
        r"\bimplements\s+HealthIndicator\b",
        _HAND,
        '@app.check("name")',
        "your function takes part in app.health(); `pyjmsack check queue NAME --max-depth N` checks how many messages"
        " wait",
    ),
    (
        r"\bMessageBuilder\s*\.\s*withPayload\s*\(|\bJmsResponse\s*\.\s*for\w+\s*\(",
        _HAND,
        "return Answer(body, properties=..., to=...)",
        "an Answer has its own properties and destination",
    ),
    (
        r"[Tt]emplate\s*\.\s*browse(?:Selected)?\s*\(",
        _HAND,
        "for message in session.create_browser(queue)",
        "to count the messages, use `pyjmsack check queue NAME --max-depth N`",
    ),
    (
        r"@Transactional\b",
        _HAND,
        "",
        "the transaction of a listener covers only messages; docs/howto/exactly-once.md shows how to add a database",
    ),
    (
        r"@Valid(?:ated)?\b",
        _HAND,
        "",
        "only the types of the values are checked: check more in __post_init__ of the dataclass, or write a pydantic"
        " model; an error there counts as an error of the listener, as in Spring",
    ),
    (
        r"@(?:Retryable|Recover)\b",
        _HAND,
        "app.listener(..., retry=Retry(...))",
        "Retry replaces Spring's retries around a method",
    ),
    (
        r"@(?:Profile|Conditional\w*)\s*\(",
        _HAND,
        "",
        "the generated code does not check this condition: it has the part under the condition everywhere",
    ),
    (
        r"\bimplements\s+(?:JmsListenerConfigurer|(?:SessionAware)?MessageListener)\b|\bnew\s+\w*JmsListenerEndpoint\s*\(",
        _HAND,
        "@app.listener(name)",
        "this code is a listener or registers a listener: write the function of the listener",
    ),
    (r"@EnableJms\b", Verdict.IGNORED, "", "an App needs no such switch"),
    (
        r"@SendTo\b",
        _NEW,
        "app.listener(..., reply_to=...), and return the answer",
        "the reply_to of a message has priority",
    ),
    (
        r"\bMessageConverter\b(?=\s+\w+\s*\()",
        _HAND,
        "App(url, converter=JsonConverter(...))",
        "JsonConverter converts JSON; for another format, write an object with to_message and from_message",
    ),
)
_COMPILED: Final = tuple((re.compile(pattern), verdict, python, why) for pattern, verdict, python, why in _PATTERNS)
_MDB: Final = re.compile(r"@MessageDriven\b")
_CALL: Final = re.compile(
    r"\b(?:convertAndSend|convertSendAndReceive|sendAndReceive|receiveAndConvert)\s*\(|[Tt]emplate\s*\.\s*browse\w*\s*\("
    r"|\bnew\s+ActiveMQ(?:Queue|Topic)\s*\("
)
"""A pattern of calls that get no row here, because the reader of sends or destinations already adds a row."""
_CREATE: Final = re.compile(r'\bcreate(Queue|Topic)\s*\(\s*"([^"]{1,500})"')
_COMMENT: Final = re.compile(r"^\s*(//|\*|/\*|import\b|package\b)")
_IMPORT: Final = re.compile(r"^\s*import\s[^;\n]{1,300}", re.MULTILINE)


_IMPORTED_CLASS: Final = re.compile(r"^[ \t]*import[ \t]+([a-z]\w*(?:\.[a-z]\w*)*)\.([A-Z]\w*)[ \t]*;", re.MULTILINE)
_OF_JAVA: Final = ("java.", "javax.", "jakarta.", "org.springframework.")
"""The packages whose classes never belong to the service itself. No class for a body is written for these classes."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_DECLARES: Final = re.compile(r"\bstatic\s+final\b|\brecord\s|\benum\s")


def read_sources(
    findings: Findings,
    settings: Settings,
    codes: Mapping[str, str],
    others: Mapping[str, str],
    known: Mapping[str, str],
    boot: Container | None = None,
    template: Template | None = None,
) -> None:
    """Add the beans, listeners and schedules of the sources to the findings, and a row for each other place that uses
    JMS.

    Args:
        codes: the sources that use JMS, by file.
        others: further sources, which are read only for constants and for the classes of bodies.
        known: values for ``${NAME}``.
        boot: the settings of listeners in the properties of Spring Boot.
        template: the settings of the ``JmsTemplate`` in these properties.
    """
    constants: dict[str, dict[str, str]] = {}
    shapes: dict[str, Shape] = {}
    sent: list[str] = []
    prefixes: dict[str, str] = {}
    read: dict[str, Tokens] = {}
    for file, text in _worth(codes, others).items():
        tokens = tokens_of(text)
        prefixes.update(prefixes_of(tokens) if "ConfigurationProperties" in text else ())
        constants[file] = constants_of(file, tokens)
        for name, shape in classes_of(tokens).items():
            shape.file = file
            shapes.setdefault(name, shape)
        if file in codes:
            read[file] = tokens
            sent += sent_in(tokens)
    findings.classes = with_bases(shapes)
    findings.sent += [name for name in dict.fromkeys(sent) if name in shapes]
    shared = {name: value for each in constants.values() for name, value in each.items() if "." in name}
    names = {
        file: Known(known, {**shared, **constants[file], **configured_names(tokens, prefixes, known)})
        for file, tokens in read.items()
    }
    with_beans = [file for file, text in codes.items() if "@Bean" in text]
    found = [bean for file in with_beans for bean in beans_of(file, read[file], names[file])]
    imports = {file: " ".join(_IMPORT.findall(text)) for file, text in codes.items()}
    start = len(findings.rows)
    beans = BeanRows(findings, settings, found, imports)
    beans.add()
    for file, text in codes.items():
        headers: set[int] = set()
        if "JmsListener" in text:
            headers = read_listeners(findings, settings, file, read[file], names[file], beans, boot)
        if "Scheduled" in text:
            read_schedules(findings, file, read[file], names[file])
        sends = read_functions(findings, settings, file, read[file], names[file], beans, template, shapes)
        _read_lines(findings, settings, file, text, beans.covered.get(file, set()), headers, sends)
    if beans.template("") is not None:
        _say_no_template(findings)
    _name_types(findings, shapes, codes)
    complete_bodies(findings, shapes)
    findings.records = {name for name, shape in shapes.items() if shape.record}
    findings.areas = {name: (Place(shape.file, shape.line), shape.last) for name, shape in shapes.items()}
    order = {file: number for number, file in enumerate(codes)}
    rows = sorted(findings.rows[start:], key=lambda row: (order.get(row.place.file, len(order)), row.place.line))
    findings.rows[start:] = rows


def _say_no_template(findings: Findings) -> None:
    """Change the rows of the keys for Spring Boot's ``JmsTemplate`` if the sources have a ``JmsTemplate`` as a bean,
    because then the keys have no effect.
    """
    why = "the sources have a JmsTemplate as a bean. Therefore Spring Boot makes none, and this key has no effect"
    for number, row in enumerate(findings.rows):
        if row.key.startswith("spring.jms.template."):
            findings.rows[number] = replace(row, verdict=Verdict.IGNORED, python="", why=why)


def _worth(codes: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the sources that are read for constants and classes: some of ``others``, then all of ``codes``.

    A source of ``others`` is read in two cases: it declares a constant, a record or an enumeration; or its class is
    named in a source that is read. The class of a source has the name of the file.
    """
    chosen = {file: text for file, text in others.items() if _DECLARES.search(text)}
    by_name = {PurePath(file).stem: file for file in others if file not in chosen}
    new = [*codes.values(), *chosen.values()]
    while new and by_name:
        words = {word for text in new for word in _WORD.findall(text)}
        files = [by_name.pop(name) for name in sorted(words & by_name.keys())]
        chosen |= {file: others[file] for file in files}
        new = [others[file] for file in files]
    return {**chosen, **codes}


def _name_types(findings: Findings, shapes: Mapping[str, Shape], codes: Mapping[str, str]) -> None:
    """Add the full name of each class of a body to ``types``, if Spring has no mapping for the class. Spring then
    writes the full name into the type property.
    """
    if not findings.type_property:
        return
    mapped = {*findings.types.values()}
    imported = {
        found[2]: f"{found[1]}.{found[2]}" for text in codes.values() for found in _IMPORTED_CLASS.finditer(text)
    }
    bodies = [*findings.sent]
    for listener in findings.listeners:
        bodies += [annotation for _, annotation in listener.parameters if "Header(" not in annotation]
        bodies.append(listener.answers)
    for word in dict.fromkeys(_WORD.findall(" ".join(bodies))):
        full = shapes[word].full_name if word in shapes else imported.get(word)
        if full is not None and word not in mapped and not full.startswith(_OF_JAVA):
            findings.types[full] = word


def _read_lines(
    findings: Findings, settings: Settings, file: str, text: str, covered: set[int], headers: set[int], sends: set[int]
) -> None:
    """Add a row for each line that uses JMS and has no row yet."""
    for number, line in enumerate(text.splitlines()[:_MOST_LINES], start=1):
        line = line[:_LONGEST_LINE]
        if number in covered or _COMMENT.match(line):
            continue
        place = Place(file, number)
        if _MDB.search(line):
            why = "a consumer with a message_listener, in a transacted session, replaces this message-driven bean"
            findings.add(place, "@MessageDriven", "", _HAND, "consumer.message_listener = f", why)
        for found in _CREATE.finditer(line):
            topic = found[1] == "Topic"
            key, broker = f"create{found[1]}", settings.broker
            translate_destination(findings, place, key, found[2], topic=topic, broker=broker)
        line = line.replace("@Header(", "(").replace("@SendTo", "") if number in headers else line
        _calls(findings, place, _CALL.sub("(", line) if number in sends else line)


def _calls(findings: Findings, place: Place, line: str) -> None:
    taken: list[tuple[int, int]] = []
    for pattern, verdict, python, why in _COMPILED:
        found = pattern.search(line)
        if found is None or any(start < found.end() and found.start() < end for start, end in taken):
            continue
        taken.append(found.span())
        findings.add(
            place, shown("code", found[0].rstrip("( ")), "", verdict, python, why or "the name has the Python spelling"
        )
