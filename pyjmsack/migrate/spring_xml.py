"""Reads Spring's XML files: the beans that are connection factories, pools, listener containers or templates, and the
elements with the prefixes ``jms:`` and ``amq:``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.java_options.reasons import NO_BROKER_INSIDE
from pyjmsack.migrate.bean_keys import CLASSES, CONTAINER, POOL, TEMPLATE, WRAPPERS, Said
from pyjmsack.migrate.destinations import NewDestination, translate_destination
from pyjmsack.migrate.factory import PASSWORD, Setting, add_factory
from pyjmsack.migrate.model import Factory, Findings, Listener, Place, Settings, Verdict
from pyjmsack.migrate.modes import mode_of
from pyjmsack.migrate.values import HIDDEN, Missing, is_secret, resolve, seconds, shown
from pyjmsack.migrate.xml_file import Element
from pyjmsack.types import AckMode

__all__ = ["AMQ", "BEANS", "JMS", "is_spring", "read_spring"]

BEANS: Final = "http://www.springframework.org/schema/beans"
JMS: Final = "http://www.springframework.org/schema/jms"
AMQ: Final = "http://activemq.apache.org/schema/core"
_P: Final = "http://www.springframework.org/schema/p|"
_C: Final = "http://www.springframework.org/schema/c|"
_ARGUMENT: Final = "constructor-arg["
_URL: Final = re.compile(r"\(?(?:[a-z][a-z0-9+.-]*:)+(?://|\()", re.I)
_AMQ_KINDS: Final = {
    "connectionFactory": "factory",
    "xaConnectionFactory": "factory",
    "sslConnectionFactory": "factory",
    "queue": "queue",
    "topic": "topic",
    "redeliveryPolicy": "redeliveryPolicy",
    "prefetchPolicy": "prefetchPolicy",
    "redeliveryPolicyMap": "redeliveryPolicyMap",
}
_POLICIES: Final = ("redeliveryPolicy", "prefetchPolicy", "presettlePolicy", "messageIDPolicy")
_URL_NAMES: Final = ("brokerURL", "remoteURI", "brokerUrl")
_DESTINATIONS: Final = ("destination", "destinationName", "defaultDestination", "defaultDestinationName")
_MODES: Final = ("sessionTransacted", "sessionAcknowledgeMode", "sessionAcknowledgeModeName", "acknowledge")
_TOPICS: Final = {"topic", "durableTopic", "sharedTopic", "sharedDurableTopic"}
_FOLLOWED: Final = 20
_LONGEST_INDEX: Final = 3


@dataclass(slots=True)
class _Property:
    """One property of a bean. Its value is a text, a reference to another bean, or a bean inside the property."""

    name: str
    line: int
    value: str = ""
    reference: str = ""
    inner: Element | None = None


@dataclass(slots=True)
class _Bean:
    kind: str
    name: str
    class_name: str
    element: Element
    properties: list[_Property] = field(default_factory=list)

    def text(self, *names: str) -> str:
        return next((one.value for one in self.properties if one.name in names and one.value), "")

    def one(self, *names: str) -> _Property | None:
        return next((one for one in self.properties if one.name in names), None)


def is_spring(root: Element) -> bool:
    """Return whether the XML has beans for messaging."""
    return any(_kind(element) or element.namespace == JMS for element in root.all())


def read_spring(findings: Findings, settings: Settings, file: str, root: Element, known: Mapping[str, str]) -> None:
    """Add the rows, factories and listeners of a file.

    Args:
        known: values for ``${NAME}`` from the given files of properties.
    """
    _Reader(findings, settings, file, {**known, **settings.variables}, root).read()


def _kind(element: Element) -> str:
    if element.namespace == AMQ:
        return _AMQ_KINDS.get(element.name, "")
    if element.name in ("bean", "component") or "class" in element.attributes:
        return CLASSES.get(element.get("class").rpartition(".")[2], "")
    return ""


def _properties(element: Element) -> Iterator[_Property]:
    for name, value in element.attributes.items():
        if name.startswith(_P):
            plain = name.removeprefix(_P)
            if plain.endswith("-ref"):
                yield _Property(plain.removesuffix("-ref"), element.line, reference=value)
            else:
                yield _Property(plain, element.line, value)
        elif name.startswith(_C):
            plain = name.removeprefix(_C).removeprefix("_")
            if plain.endswith("-ref"):
                yield _Property(f"{_ARGUMENT}{plain.removesuffix('-ref')}]", element.line, reference=value)
            else:
                yield _Property(f"{_ARGUMENT}{plain}]", element.line, value)
        elif element.namespace == AMQ and name not in ("id", "name") and "|" not in name:
            yield _Property(
                name, element.line, value, reference=value.removeprefix("#") if value.startswith("#") else ""
            )
    arguments = 0
    for child in element.children:
        if child.name == "constructor-arg" and element.namespace != AMQ:
            # Spring counts the arguments that have no index
            yield _of_child(child, f"{_ARGUMENT}{child.get('name') or child.get('index') or arguments}]")
            arguments += 1
        elif child.name == "property" and element.namespace != AMQ:
            yield _of_child(child, child.get("name"))
        elif element.namespace == AMQ:
            inner = child.children[0] if child.children else None
            yield _Property(child.name, child.line, inner=inner or child)


def _of_child(child: Element, name: str) -> _Property:
    made = _Property(name, child.line, child.get("value"), child.get("ref"))
    for part in child.children:
        if part.name == "value" or part.name == "idref":
            made.value = part.text.strip()
        elif part.name == "ref":
            made.reference = part.get("bean") or part.get("local")
        elif part.name not in ("null", "list", "map", "set", "props", "description"):
            made.inner = part
        elif part.name == "list":
            made.inner = part.children[0] if part.children else None
    return made


def _index(one: _Property) -> int | None:
    """Return the index of an argument of a constructor. Return ``None`` if the argument has a name instead."""
    index = one.name[len(_ARGUMENT) : -1] if one.name.startswith(_ARGUMENT) else ""
    return int(index) if index.isdecimal() and len(index) <= _LONGEST_INDEX else None


def _login_option(argument: _Property, first: int | None) -> str:
    """Return the option for an argument of a constructor: the user name or the password, or an empty string.

    All constructors of the clients take the user name before the password, and the URL before or after both. An
    argument that may be the password is never shown.
    """
    index = _index(argument)
    if index is not None:
        return "jms.username" if index == first else "jms.password"
    name = argument.name[len(_ARGUMENT) : -1]
    if is_secret(name):
        return "jms.password"
    return "jms.username" if name in ("user", "userName", "username") else ""


def _is_url(argument: _Property) -> bool:
    return _URL.match(argument.value) is not None


class _Reader:
    def __init__(
        self, findings: Findings, settings: Settings, file: str, known: Mapping[str, str], root: Element
    ) -> None:
        self.findings = findings
        self.settings = settings
        self.file = file
        self.known = known
        self.root = root
        self.beans = [bean for element in root.all() if (bean := self._bean(element)) is not None]
        self.by_name = {name: bean for bean in self.beans for name in bean.name.replace(",", " ").split()}
        self.factories: dict[int, Factory] = {}
        """For each bean, by the identity of its element, its connection factory."""

    def read(self) -> None:
        for bean in self.beans:
            if bean.kind == "factory":
                self._factory(bean)
        for bean in self.beans:
            if bean.kind == "pool":
                self._simple(bean, POOL)
            elif bean.kind == "template":
                self._simple(bean, TEMPLATE)
            elif bean.kind == "container":
                self._container(bean)
            elif bean.kind in ("queue", "topic"):
                self._destination_bean(bean)
            elif bean.kind in ("other", "jndi", "component", "embedded"):
                self._other(bean)
        for element in self.root.all():
            if element.namespace == JMS and element.name in ("listener-container", "jca-listener-container"):
                self._jms_container(element)
        self.findings.other_keys += sum(1 for element in self.root.children if not _kind(element))

    def _bean(self, element: Element) -> _Bean | None:
        kind = _kind(element)
        if not kind:
            return None
        bean = _Bean(kind, element.get("id") or element.get("name"), element.get("class"), element)
        bean.properties = [self._resolved(one) for one in _properties(element)]
        return bean

    def _resolved(self, one: _Property) -> _Property:
        try:
            one.value = resolve(one.value, self.known)
        except Missing as missing:
            if not is_secret(one.name):
                self._add(one.line, one.name, one.value, (Verdict.BY_HAND, "", str(missing)))
            one.value = ""
        return one

    def _place(self, line: int) -> Place:
        return Place(self.file, line)

    def _add(self, line: int, key: str, value: str, said: Said) -> None:
        self.findings.add(self._place(line), key, shown(key, value), *said)

    # factories

    def _factory(self, bean: _Bean) -> None:
        client = "qpid" if "qpid" in bean.class_name else "artemis" if ".artemis." in bean.class_name else "activemq"
        url = self._url(bean)
        indices = (_index(one) for one in bean.properties if one is not url)
        first = min((index for index in indices if index is not None), default=None)
        also: list[Setting] = []
        for one in bean.properties:
            if one is url or one.name in _URL_NAMES:
                continue
            also += self._settings(client, bean, one, first)
        usual = "amqp://localhost:5672" if client == "qpid" else "tcp://localhost:61616"
        line = url.line if url else bean.element.line
        made = add_factory(
            self.findings,
            self.settings,
            self._place(line),
            f"{bean.name or 'bean'}.{url.name}" if url else f"{bean.name or 'bean'} (default URL)",
            url.value if url else usual,
            name=bean.name.split(",")[0].strip() or "connection_factory",
            client=client,
            also=also,
        )
        if made is not None:
            self.factories[id(bean.element)] = made

    def _url(self, bean: _Bean) -> _Property | None:
        arguments = [one for one in bean.properties if one.name.startswith(_ARGUMENT)]
        named = (one for one in arguments if one.name[len(_ARGUMENT) : -1] in _URL_NAMES)
        return bean.one(*_URL_NAMES) or next(named, None) or next(filter(_is_url, arguments), None)

    def _settings(self, client: str, bean: _Bean, one: _Property, first: int | None) -> Iterator[Setting]:
        """Yield the settings of a property. If the property is a policy, which is a bean, each property of the policy
        is a setting.

        Args:
            first: the smallest index of the arguments of the constructor beside the URL.
        """
        key = f"{bean.name or 'bean'}.{one.name}"
        start = "" if client == "artemis" else "jms."
        policy = one.inner or (self.by_name[one.reference].element if one.reference in self.by_name else None)
        if one.name in _POLICIES and policy is not None:
            for inner in map(self._resolved, _properties(policy)):
                option = f"{start}{one.name}.{inner.name}"
                yield Setting(self._place(inner.line), f"{one.name}.{inner.name}", option, inner.value)
        elif one.name.startswith(_ARGUMENT):
            option = _login_option(one, first)
            if option and one.value:
                yield Setting(self._place(one.line), f"{bean.name or 'bean'}.{option}", option, one.value)
        else:
            yield Setting(self._place(one.line), key, f"{start}{one.name}", one.value)

    def _factory_of(self, name: str) -> str:
        """Return the name of the connection factory that a reference leads to, directly or through pools."""
        for _ in range(_FOLLOWED):
            bean = self.by_name.get(name)
            if bean is None or bean.kind == "factory":
                break
            one = bean.one(*WRAPPERS, "constructor-arg[0]")
            if one is None:
                break
            if one.inner is not None:
                made = self.factories.get(id(one.inner))
                return made.name if made else ""
            name = one.reference
        made = self.factories.get(id(self.by_name[name].element)) if name in self.by_name else None
        return made.name if made else ""

    # the elements that use factories

    def _simple(self, bean: _Bean, table: Mapping[str, Said]) -> None:
        kind = "topic" if bean.text("pubSubDomain") == "true" else "queue"
        for one in bean.properties:
            if one.name in WRAPPERS or one.name.startswith("constructor-arg"):
                continue
            if one.name in _DESTINATIONS:
                self._destination(bean, one, topic=kind == "topic")
            else:
                self._by_table(bean, one, table)

    def _by_table(self, bean: _Bean, one: _Property, table: Mapping[str, Said]) -> None:
        key = f"{bean.name or bean.class_name.rpartition('.')[2] or bean.element.name}.{one.name}"
        value = one.value or one.reference
        said = table.get(one.name)
        if said is None:
            near = difflib.get_close_matches(one.name, table, n=1, cutoff=0.75)
            meant = f"did you mean {near[0]}? " if near else ""
            why = f"this property of Spring's class is not known: {meant}look at the code that sets the property"
            said = (Verdict.BY_HAND, "", why)
        verdict, python, why = said
        if is_secret(one.name):
            self._add(one.line, key, HIDDEN, (verdict, f"env:{PASSWORD}", why))
            return
        try:
            python = python.replace("{s}", seconds(value)) if "{s}" in python else python.format(shown(one.name, value))
        except ValueError as error:
            verdict, why = Verdict.BY_HAND, str(error)
        self._add(one.line, key, value, (verdict, python, why))

    def _destination(self, bean: _Bean, one: _Property, *, topic: bool) -> NewDestination | None:
        other = self.by_name.get(one.reference) or (self._bean(one.inner) if one.inner is not None else None)
        name = one.value
        if other is not None and other.kind in ("queue", "topic"):
            name, topic = _physical_name(other), other.kind == "topic"
        if not name:
            self._add(one.line, f"{bean.name or 'bean'}.{one.name}", one.reference, (Verdict.BY_HAND, "", _ELSEWHERE))
            return None
        key = f"{bean.name or bean.kind}.{one.name}"
        broker = self.settings.broker
        return translate_destination(self.findings, self._place(one.line), key, name, topic=topic, broker=broker)

    def _destination_bean(self, bean: _Bean) -> None:
        name = _physical_name(bean)
        if name:
            translate_destination(
                self.findings,
                self._place(bean.element.line),
                bean.name or bean.kind,
                name,
                topic=bean.kind == "topic",
                broker=self.settings.broker,
            )

    def _container(self, bean: _Bean) -> None:
        topic = bean.text("pubSubDomain") == "true"
        transacted = bean.text("sessionTransacted") == "true"
        mode = mode_of(bean.text("sessionAcknowledgeMode", "sessionAcknowledgeModeName"), transacted=transacted)
        destination: NewDestination | None = None
        for one in bean.properties:
            if one.name in _DESTINATIONS:
                destination = self._destination(bean, one, topic=topic)
            elif one.name in _MODES:
                self._mode(bean, one, transacted)
            elif one.name not in WRAPPERS and not one.name.startswith("constructor-arg"):
                self._by_table(bean, one, CONTAINER)
        if destination is None or not destination.name or mode is None:
            return
        wrapper = bean.one("connectionFactory")
        least, most = bean.text("concurrentConsumers"), bean.text("maxConcurrentConsumers")
        listener = Listener(
            bean.name or destination.name,
            self._place(bean.element.line),
            destination.name,
            destination.topic,
            mode.mode,
            bean.text("messageSelector"),
            bean.text("concurrency") or (f"{least or 1}-{most}" if most else least or "1"),
            bean.text("durableSubscriptionName", "subscriptionName"),
            bean.text("subscriptionDurable") == "true" or bool(bean.text("durableSubscriptionName")),
            bean.text("subscriptionShared") == "true",
            self._factory_of(wrapper.reference) if wrapper is not None else "",
        )
        self.findings.listen(listener)

    def _mode(self, bean: _Bean, one: _Property, transacted: bool) -> None:
        value = one.value or one.reference
        key = f"{bean.name or 'container'}.{one.name}"
        mode = mode_of(value if one.name != "sessionTransacted" else "", transacted=transacted)
        if mode is None:
            self._add(
                one.line, key, value, (Verdict.BY_HAND, "", "expected AUTO, CLIENT, DUPS_OK, or the number of a mode")
            )
        else:
            self._add(one.line, key, value, (Verdict.CHANGED, f"AckMode.{mode.mode.name}", mode.why))

    def _jms_container(self, element: Element) -> None:
        """Read ``<jms:listener-container>``. Its attributes apply to each of its listeners."""
        kind = element.get("destination-type", "queue")
        mode = mode_of(element.get("acknowledge", "auto"))
        bean = _Bean("container", element.get("factory-id") or "jms:listener-container", "", element)
        for name, value in element.attributes.items():
            if name in ("connection-factory", "destination-type"):
                continue
            one = self._resolved(_Property(name, element.line, value))
            self._mode(bean, one, False) if name == "acknowledge" else self._by_table(bean, one, CONTAINER)
        for child in element.children:
            if child.name == "listener":
                self._jms_listener(element, child, kind, mode.mode if mode else None)

    def _jms_listener(self, container: Element, child: Element, kind: str, mode: AckMode | None) -> None:
        bean = _Bean("container", child.get("id") or "jms:listener", "", child)
        destination: NewDestination | None = None
        for name, value in child.attributes.items():
            one = self._resolved(_Property(name, child.line, value))
            if name == "destination":
                destination = self._destination(bean, one, topic=kind in _TOPICS)
            else:
                self._by_table(bean, one, CONTAINER)
        if destination is None or not destination.name or mode is None:
            return
        made = Listener(
            child.get("id") or destination.name, self._place(child.line), destination.name, destination.topic
        )
        made.mode = mode
        made.selector = child.get("selector")
        made.concurrency = child.get("concurrency") or container.get("concurrency", "1")
        made.subscription = child.get("subscription")
        made.durable = "urable" in kind
        made.shared = kind.startswith("shared")
        made.factory = self._factory_of(container.get("connection-factory", "connectionFactory"))
        self.findings.listen(made)

    def _other(self, bean: _Bean) -> None:
        verdict, why = _OTHERS[bean.kind]
        name = bean.class_name.rpartition(".")[2]
        self._add(bean.element.line, bean.name or name, name, (verdict, "", why))
        for one in bean.properties:
            if one.name in WRAPPERS or is_secret(one.name):
                continue
            value = one.value or one.reference
            self._add(
                one.line,
                f"{bean.name or name}.{one.name}",
                value,
                (verdict, "", "this property is a part of the bean above"),
            )


_ELSEWHERE: Final = (
    "another file or code makes the bean: write the name of the destination into create_queue or create_topic"
)
_OTHERS: Final = {
    "other": (
        Verdict.BY_HAND,
        "write code instead: commit() ends a transaction, and your own functions convert bodies",
    ),
    "jndi": (Verdict.BY_HAND, "pyjmsack has no JNDI; give the URL of the broker from jndi.properties"),
    "component": (Verdict.BY_HAND, "Camel's routes are code: each endpoint becomes a listener or a send"),
    "embedded": (Verdict.BY_HAND, NO_BROKER_INSIDE),
}


def _physical_name(bean: _Bean) -> str:
    return bean.text("physicalName", "name", "address") or next(
        (one.value for one in bean.properties if one.name.startswith("constructor-arg")), ""
    )
