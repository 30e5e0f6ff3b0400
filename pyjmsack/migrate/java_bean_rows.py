"""Turns the beans that Java code makes into rows, connection factories, and settings of listeners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.migrate.bean_keys import CONTAINER, POOL, TEMPLATE, WRAPPERS, Said
from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.factory import Setting, add_factory
from pyjmsack.migrate.java_bean_keys import ANSWER, BOOLEANS, CODE, LITERALS, at_most, delivery_mode
from pyjmsack.migrate.java_beans import Argument, Bean, Made, Property, by_name
from pyjmsack.migrate.java_templates import QOS, Template, has_qos, template_of_bean
from pyjmsack.migrate.model import Findings, Place, Settings, Verdict
from pyjmsack.migrate.modes import mode_of
from pyjmsack.migrate.values import HIDDEN, is_secret, seconds, shown

__all__ = ["BeanRows", "Container"]

_HAND: Final = Verdict.BY_HAND
_CONVERTERS: Final = {"MappingJackson2MessageConverter", "JacksonJsonMessageConverter"}
_QPID: Final = ("JmsConnectionFactory",)
_URL: Final = re.compile(r"\w+:|\(")
_NAMES: Final = ("defaultDestinationName",)
_FOLLOWED: Final = 20
_OF_SENDS: Final = "arguments of each send"
_TABLES: Final = {"container": CONTAINER, "template": TEMPLATE}


@dataclass(slots=True)
class Container:
    """The settings of a container factory. They apply to each listener that names the factory. ``None`` = not set."""

    by_boot: bool = True
    simple: bool = False
    """Whether a single number of workers is the exact number, and not only the upper limit."""
    concurrency: str | None = None
    transacted: str | None = None
    acknowledge: str | None = None
    topic: str | None = None
    durable: str | None = None
    shared: str | None = None
    client_id: str | None = None
    autostart: str | None = None
    answers_to_topic: str | None = None
    answer: str = ""
    """The Python code of an answer with the settings of ``replyQosSettings``. Empty if there are no such settings."""
    factory: str = ""
    """The name of the connection factory in the findings. Empty if it is not known."""
    unknown: list[str] = field(default_factory=list)
    """The names of the settings whose value is not a literal."""
    on_error: str = ""
    """The name of the bean, if the container factory has an ``ErrorHandler``. Otherwise empty."""


_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "concurrency": ("concurrency", "concurrentConsumers"),
    "transacted": ("sessionTransacted",),
    "acknowledge": ("sessionAcknowledgeMode", "sessionAcknowledgeModeName"),
    "topic": ("pubSubDomain",),
    "durable": ("subscriptionDurable",),
    "shared": ("subscriptionShared",),
    "client_id": ("clientId",),
    "autostart": ("autoStartup",),
    "answers_to_topic": ("replyPubSubDomain",),
}


class BeanRows:
    """Turns the beans of all sources into rows of the findings, and answers questions about the beans.

    Args:
        findings, settings: as for :func:`pyjmsack.migrate.migrate`.
        beans: the beans, in the order of the files.
        imports: the imported names of each file, in one text.
    """

    def __init__(self, findings: Findings, settings: Settings, beans: list[Bean], imports: Mapping[str, str]) -> None:
        self._findings = findings
        self._settings = settings
        self._beans = beans
        self._by_name = by_name(beans)
        self._imports = imports
        self._factories: dict[int, str] = {}
        """The names of connection factories in the findings, by the identity of their objects."""
        self.covered: dict[str, set[int]] = {}
        """For each file, the numbers of the lines that a bean's row covers."""

    def add(self) -> None:
        """Add the connection factories and the rows of all beans to the findings."""
        for bean in self._beans:
            self.covered.setdefault(bean.file, set()).update(bean.head)
            for made in self._objects(bean.made):
                if made.kind == "factory":
                    self._factory(bean, made)
        for bean in self._beans:
            for made in self._objects(bean.made):
                if made.kind != "factory":
                    self._bean(bean, made)

    def container(self, name: str) -> Container | None:
        """Return the settings of the container factory with this name, or ``None`` if the sources do not have the
        factory.
        """
        bean = self._by_name.get(name)
        if bean is None or bean.made.kind != "container":
            return None
        made, found = bean.made, Container(bean.made.by_boot, bean.made.class_name.startswith("Simple"))
        for setting, names in _SETTINGS.items():
            value = next((value for one in names if (value := made.text(one)) is not None), None)
            if names[0] == "concurrency" and value == made.text("concurrency") and not found.simple:
                value = value and at_most(value)
            setattr(found, setting, value)
            found.unknown += [one for one in names if made.unsure(one)]
        found.factory = self._connection_factory(bean)
        answer = made.one("replyQosSettings")
        found.answer = _qos(answer)[1] if answer is not None else ""
        found.on_error = bean.names[0] if made.one("errorHandler") is not None else ""
        return found

    def template(self, name: str) -> Template | None:
        """Return the settings of the ``JmsTemplate`` that a field or parameter with this name gets.

        ``None`` if the sources have no such bean. In this case Spring Boot makes the ``JmsTemplate``.
        """
        found = [bean for bean in self._beans if bean.made.kind == "template"]
        if not found:
            return None
        bean = self._by_name.get(name)
        if bean not in found:
            bean = next((one for one in found if one.primary), found[0] if len(found) == 1 else None)
        if bean is None:
            names = ", ".join(bean.names[0] for bean in found)
            return Template(open=[f"several beans may be the template ({names}): write the settings of the right bean"])
        made = bean.made
        given = next((one.made for one in made.arguments if one.made is not None and one.made.kind == "template"), None)
        template = template_of_bean(given or made)
        default = made.one("defaultDestination")
        if default is not None and (named := self.destination(default.only.source.partition(" ")[0])) is not None:
            template.destination = f"{'topic' if named[1] else 'queue'}://{named[0]}"
            template.open = [why for why in template.open if "default destination" not in why]
        template.factory = self._connection_factory(bean)
        return template

    @property
    def converts(self) -> bool:
        """Whether these sources have a bean that converts messages. Spring Boot gives this bean to its template."""
        return any(bean.made.class_name in _CONVERTERS for bean in self._beans)

    def destination(self, name: str) -> tuple[str, bool] | None:
        """Return the name of a destination that is a bean, and whether it is a topic. Return ``None`` if there is no
        such bean.
        """
        bean = self._by_name.get(name)
        if bean is None or bean.made.kind not in ("queue", "topic") or not bean.made.arguments:
            return None
        text = bean.made.arguments[0].value
        return (text, bean.made.kind == "topic") if text is not None else None

    # connection factories

    def _objects(self, made: Made) -> Iterator[Made]:
        """Yield the objects for messaging that an object has as arguments or properties, and then the object itself."""
        for one in (*made.arguments, *(one for prop in made.properties for one in prop.arguments)):
            if one.made is not None and one.made.kind:
                yield from self._objects(one.made)
        yield made

    def _connection_factory(self, bean: Bean) -> str:
        """Return the name of the connection factory that a container factory or a template uses, directly or through
        pools.
        """
        given = bean.made.one("connectionFactory")
        argument = given.only if given is not None else None
        if argument is None and bean.made.kind == "template":
            argument = next(iter(bean.made.arguments), Argument(""))
        if argument is None and bean.made.by_boot:
            argument = Argument("")
        for _ in range(_FOLLOWED):
            if argument is None:
                return ""
            made = argument.made
            if made is None:
                other = self._by_name.get(bean.references.get(argument.source, argument.source)) or self._primary()
                if other is None or other.made.kind not in ("factory", "pool"):
                    return ""
                bean, made = other, other.made
            if made.kind == "factory":
                return self._factories.get(id(made), "")
            argument = next(iter(made.arguments), None) or next(
                (one.only for one in made.properties if one.name in WRAPPERS), None
            )
        return ""

    def _primary(self) -> Bean | None:
        """Return the connection factory that a parameter gets if no bean has the parameter's name."""
        found = [bean for bean in self._beans if bean.made.kind in ("factory", "pool")]
        return next((bean for bean in found if bean.primary), found[0] if len(found) == 1 else None)

    def _factory(self, bean: Bean, made: Made) -> None:
        client = self._client(bean, made)
        at = next((number for number, one in enumerate(made.arguments) if _is_url(one)), None)
        by_setter = made.one("brokerURL") or made.one("remoteURI")
        url = made.arguments[at].value if at is not None else by_setter.only.value if by_setter else None
        place = self._covered(bean, made.line)
        if url is None:
            given = [one.source for one in made.arguments if one.value is None]
            given += [by_setter.only.source] if by_setter else []
            why = "the URL is not a literal: write the URL into the generated code"
            source = shown("code", f"new {made.class_name}({', '.join(given)})")
            self._findings.add(place, bean.names[0], source, _HAND, "ConnectionFactory(url)", why)
            return
        login = [one for number, one in enumerate(made.arguments) if number != at]
        name = bean.names[0]
        also = [*self._login(place, name, login), *self._settings_of(bean, made, client)]
        added = add_factory(
            self._findings, self._settings, place, f"{name}.url", url, name=name, client=client, also=also
        )
        if added is not None:
            self._factories[id(made)] = added.name

    def _login(self, place: Place, name: str, login: list[Argument]) -> Iterator[Setting]:
        if len(login) != 2:
            return
        user, _ = login
        if user.value is None:
            why = "the user name is not a literal: write the user name into the generated code"
            self._findings.add(place, f"{name}.username", shown("code", user.source), _HAND, "username=...", why)
        else:
            yield Setting(place, f"{name}.username", "jms.username", user.value)
        yield Setting(place, f"{name}.password", "jms.password", "")  # the value of a secret is never read

    def _client(self, bean: Bean, made: Made) -> str:
        if made.class_name in _QPID:
            return "qpid"
        imports = self._imports.get(bean.file, "")
        return "artemis" if "activemq.artemis" in imports else "activemq"

    def _settings_of(self, bean: Bean, made: Made, client: str) -> Iterator[Setting]:
        """Yield the settings of a connection factory. The name of each setting is the name of the same URL option."""
        names = {"user": "jms.username", "userName": "jms.username", "username": "jms.username"}
        for one in made.properties:
            place, key = self._covered(bean, one.line), f"{bean.names[0]}.{one.name}"
            start = "" if client == "artemis" else "jms."
            policy = one.only.made
            if policy is not None and policy.kind in ("redeliveryPolicy", "prefetchPolicy"):
                for inner in policy.properties:
                    self._covered(bean, inner.line)
                    if inner.only.value is not None:
                        option = f"{start}{one.name}.{inner.name}"
                        yield Setting(Place(bean.file, inner.line), f"{key}.{inner.name}", option, inner.only.value)
                    else:
                        self._no_literal(bean, inner, f"{key}.{inner.name}")
            elif one.name in ("brokerURL", "remoteURI"):
                continue
            elif one.only.value is None or one.conditional:
                self._no_literal(bean, one, key)
            else:
                yield Setting(place, key, names.get(one.name, f"{start}{one.name}"), one.only.value)

    # the other beans

    def _covered(self, bean: Bean, line: int) -> Place:
        self.covered.setdefault(bean.file, set()).add(line)
        return Place(bean.file, line)

    def _bean(self, bean: Bean, made: Made) -> None:
        kind = "converter" if made.class_name in _CONVERTERS else made.kind
        place = self._covered(bean, made.line)
        name = bean.names[0] if made is bean.made else made.class_name
        if kind == "pool":
            self._findings.add(place, name, made.class_name, *POOL["maxConnections"])
        elif kind == "converter":
            self._converter(bean, made, name)
        elif kind == "container":
            why = (
                "the rows below show the settings of this bean, and the generated code writes these settings at each"
                " listener that names the bean"
            )
            self._findings.add(place, name, made.class_name, Verdict.CHANGED, "arguments of app.listener", why)
        elif kind == "template":
            why = "an App has one sender; each setting of this bean is an argument of each send"
            self._findings.add(place, name, made.class_name, Verdict.CHANGED, "app.sender", why)
        elif kind in ("queue", "topic"):
            self._destination(bean, made, name)
        elif made.class_name == "SimpleMessageConverter":
            why = (
                "this converter sends a Map as a MapMessage: send MapMessage({...}); a parameter of type dict gets the"
                " content of a MapMessage"
            )
            self._findings.add(place, name, made.class_name, _HAND, "App(url)", why)
        elif made.class_name.endswith("Converter"):
            why = "code: an object with to_message and from_message converts bodies"
            self._findings.add(place, name, made.class_name, _HAND, "App(url, converter=...)", why)
        else:
            why = "this bean is code: look how the service uses the bean"
            self._findings.add(place, name, made.class_name, _HAND, "", why)
        for one in made.properties:
            if one.name not in WRAPPERS:
                self._property(bean, made, kind, one, f"{name}.{one.name}")

    def _destination(self, bean: Bean, made: Made, name: str) -> None:
        place, given = Place(bean.file, made.line), made.arguments[0] if made.arguments else Argument("")
        if given.value is None:
            why = "the name is not a literal: write the name into app.listener or app.sender.send"
            self._findings.add(place, name, shown("code", given.source), _HAND, "", why)
            return
        broker, topic = self._settings.broker, made.kind == "topic"
        translate_destination(self._findings, place, name, given.value, topic=topic, broker=broker)

    def _converter(self, bean: Bean, made: Made, name: str) -> None:
        key, mapping = made.text("typeIdPropertyName"), made.one("typeIdMappings")
        entries = mapping.only.made.entries if mapping is not None and mapping.only.made is not None else {}
        listed = ", ".join(f"{text!r}: {_identifier(kind)}" for text, kind in entries.items())
        why = "JsonConverter writes the same JSON as Jackson; define the classes as dataclasses"
        if key is None:
            python = "JsonConverter()"
        elif entries:
            python = f"JsonConverter({key!r}, {{{listed}}})"
        else:
            python, why = (
                f"JsonConverter({key!r}, {{...}})",
                "without a mapping, the property has the full name of the Java class",
            )
        self._findings.add(self._covered(bean, made.line), name, made.class_name, Verdict.CHANGED, python, why)
        if key is not None and not self._findings.type_property:
            self._findings.type_property, self._findings.types = key, dict(entries)

    def _property(self, bean: Bean, made: Made, kind: str, one: Property, key: str) -> None:
        place, value = self._covered(bean, one.line), one.only.value
        code = CODE.get(kind, {}).get(one.name)
        if kind == "converter" and one.name in ("typeIdPropertyName", "typeIdMappings"):
            if value is None and one.only.made is None:
                self._no_literal(bean, one, key)
            return
        if kind == "template" and one.name in QOS and not has_qos(made):
            why = "Java ignores this setting without setExplicitQosEnabled(true): leave the argument out of the send"
            self._findings.add(place, key, _shown(one), Verdict.IGNORED, "", why)
        elif one.name == "qosSettings" and kind == "template":
            why = f"{_OF_SENDS}; setQosSettings makes Java use them"
            self._findings.add(place, key, _shown(one), *_send_qos(one, why))
        elif one.name in ("replyQosSettings", "qosSettings"):
            self._findings.add(place, key, _shown(one), *_qos(one))
        elif one.name == "messageConverter" and self._is_json(bean, one):
            why = "the app has this converter; the row of the bean describes the converter"
            self._findings.add(place, key, _shown(one), Verdict.CHANGED, "App(url, converter=...)", why)
        elif code is not None:
            self._findings.add(place, key, _shown(one), *code)
        elif one.name in BOOLEANS.get(kind, {}) and value in ("true", "false") and not one.conditional:
            said = BOOLEANS[kind][one.name]
            self._findings.add(place, key, value, *(said[0] if value == "true" else said[1]))
        elif (known := POOL if kind == "pool" else _TABLES.get(kind, {})).get(one.name, (_HAND,))[0] is Verdict.IGNORED:
            self._findings.add(place, key, _shown(one), *known[one.name])
        elif value is None or one.conditional:
            self._no_literal(bean, one, key)
        else:
            self._literal(place, made, one, value, key)

    def _literal(self, place: Place, made: Made, one: Property, value: str, key: str) -> None:
        kind = made.kind
        add, text = self._findings.add, shown(key, value)
        fixed = one.name == "concurrency" and made.class_name.startswith("Simple")
        row = LITERALS.get(kind, {}).get("concurrentConsumers" if fixed else one.name)
        if row is not None:
            python, form, why = row
            try:
                add(place, key, text, Verdict.CHANGED, python.format(form(value)), why)
            except ValueError as error:
                add(place, key, text, _HAND, "", str(error))
        elif one.name in _SETTINGS["acknowledge"] and (mode := mode_of(value)) is not None:
            python = "no-ack" if mode.mode.name == "NO_ACKNOWLEDGE" else "individual"
            python = "transacted" if mode.mode.name == "SESSION_TRANSACTED" else python
            why = mode.why
            if made.by_boot and made.text("sessionTransacted") != "false":
                python, why = (
                    "transacted",
                    "the configurer of Spring Boot makes the session transacted, unless"
                    " setSessionTransacted(false) or the properties say otherwise; and a transacted session has no"
                    " other mode",
                )
            add(place, key, text, Verdict.CHANGED, f"app.listener(..., mode={python!r})", why)
        elif one.name in _NAMES:
            broker = self._settings.broker
            translate_destination(self._findings, place, key, value, topic=False, broker=broker)
        else:
            said = (POOL if kind == "pool" else _TABLES.get(kind, {})).get(one.name)
            why = "this property of the bean is not known: look at the code that sets the property"
            verdict, python, why = said or (_HAND, "", why)
            text = HIDDEN if is_secret(one.name) else text
            add(place, key, text, verdict, python.replace("{s}", "{}").format(shown(one.name, value)), why)

    def _is_json(self, bean: Bean, one: Property) -> bool:
        """Return whether the value of a property is a JSON converter that these sources make."""
        made, name = one.only.made, one.only.source.removesuffix(" ( )")
        other = self._by_name.get(bean.references.get(name, name))
        made = made or (other.made if other is not None else None)
        return made is not None and made.class_name in _CONVERTERS

    def _no_literal(self, bean: Bean, one: Property, key: str) -> None:
        why = (
            "the setter is called under a condition"
            if one.conditional
            else "the value is neither a literal nor a constant of these sources"
        )
        place = self._covered(bean, one.line)
        self._findings.add(place, key, _shown(one), _HAND, "", f"{why}: write the value")


def _is_url(one: Argument) -> bool:
    return one.value is not None and bool(_URL.match(one.value)) and ("//" in one.value or ":(" in one.value)


def _shown(one: Property) -> str:
    if is_secret(one.name):
        return HIDDEN
    return shown("code", ", ".join(each.value if each.value is not None else each.source for each in one.arguments))


def _qos(one: Property) -> Said:
    """Return the replacement for ``new QosSettings(mode, priority, milliseconds)`` as the setting for answers: code
    that makes an ``Answer``.
    """
    made = one.only.made
    values = [each.value for each in made.arguments] if made is not None else []
    if len(values) != 3 or not all(value is not None for value in values):
        return ANSWER
    mode, priority, millis = (str(value) for value in values)
    try:
        names = (f"delivery_mode={delivery_mode(mode)}", f"priority={priority}", f"time_to_live={seconds(millis)}")
    except ValueError:
        return ANSWER
    return Verdict.CHANGED, f"return Answer(body, {', '.join(names)})", ANSWER[2]


def _send_qos(one: Property, why: str) -> Said:
    """Return the replacement for ``new QosSettings(mode, priority, milliseconds)`` as the setting of a template:
    arguments of a send.
    """
    verdict, python, _ = _qos(one)
    return verdict, python.replace("return Answer(body, ", "app.sender.send(..., "), why


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)
