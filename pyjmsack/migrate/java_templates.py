"""Turns the settings of a ``JmsTemplate`` into arguments of each send of an ``App``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.migrate.java_bean_keys import delivery_mode
from pyjmsack.migrate.java_beans import Made
from pyjmsack.migrate.values import seconds, shown

__all__ = ["QOS", "Template", "has_qos", "template_of", "template_of_bean", "template_of_boot"]

QOS: Final = ("timeToLive", "priority", "deliveryMode", "deliveryPersistent")
"""The properties of a ``JmsTemplate`` that Java reads only if ``explicitQosEnabled`` is true."""
_READ: Final = (*QOS, "deliveryDelay", "pubSubDomain", "defaultDestinationName", "receiveTimeout")
_OF_BOOT: Final = {
    "time_to_live": "timeToLive",
    "priority": "priority",
    "delivery_mode": "deliveryMode",
    "delivery_delay": "deliveryDelay",
    "destination": "defaultDestinationName",
    "timeout": "receiveTimeout",
    "topic": "pubSubDomain",
}
"""For each name of this library that a key of Spring Boot is translated to, the property of a ``JmsTemplate`` with the
same meaning."""


@dataclass(slots=True)
class Template:
    """The settings that a ``JmsTemplate`` adds to each send."""

    topic: bool = False
    """Whether a name is the name of a topic."""
    destination: str = ""
    """The name of the default destination. Empty if there is none."""
    arguments: dict[str, str] = field(default_factory=dict)
    """The Python text of each argument of ``app.sender.send``."""
    timeout: str = "None"
    """Seconds to wait for an answer, as Python text."""
    factory: str = ""
    """The name of the connection factory in the findings. Empty if it is not known."""
    json: bool = False
    """Whether the template has a converter that writes JSON."""
    open: list[str] = field(default_factory=list)
    """The settings of the template that are not known, as texts for the user."""

    def changed(self, made: Made) -> Template:
        """Return a copy of these settings with the changes that the setters of ``made`` make."""
        other = template_of_bean(made)
        named = {one.name for one in made.properties}
        return Template(
            other.topic if "pubSubDomain" in named else self.topic,
            other.destination or self.destination,
            {**self.arguments, **other.arguments},
            other.timeout if "receiveTimeout" in named else self.timeout,
            self.factory,
            self.json or other.json,
            [*self.open, *other.open],
        )


def template_of(values: Mapping[str, str]) -> Template:
    """Return the settings for the properties of a ``JmsTemplate``. A property has the name of its Java setter without
    ``set``.
    """
    made = Template(values.get("pubSubDomain") == "true", values.get("defaultDestinationName", ""))
    kept = values if values.get("explicitQosEnabled") == "true" else {k: v for k, v in values.items() if k not in QOS}
    for name, value in kept.items():
        try:
            if name in ("timeToLive", "deliveryDelay"):
                if float(number := seconds(value)) > 0:
                    made.arguments["time_to_live" if name == "timeToLive" else "delivery_delay"] = number
            elif name == "priority":
                made.arguments["priority"] = str(int(value))
            elif name in ("deliveryMode", "deliveryPersistent"):
                mode = {"true": "PERSISTENT", "false": "NON_PERSISTENT"}.get(value, value.upper().replace("-", "_"))
                if (text := delivery_mode(mode)) in ("DeliveryMode.PERSISTENT", "DeliveryMode.NON_PERSISTENT"):
                    made.arguments["delivery_mode"] = text
                else:
                    raise ValueError(f"expected PERSISTENT or NON_PERSISTENT, not {value}")
            elif name == "receiveTimeout":
                number = seconds(value)
                made.timeout = number if float(number) > 0 else "None" if float(number) == 0 else "0"
        except ValueError as error:
            made.open.append(f"{name}: {shown(name, str(error))}")
    if made.arguments.get("delivery_mode") == "DeliveryMode.PERSISTENT":
        del made.arguments["delivery_mode"]  # PERSISTENT is the default
    return made


def template_of_boot(settings: Mapping[str, str]) -> Template:
    """Return the settings for the keys of Spring Boot. ``settings`` has the value of each key by the target of the
    key.
    """
    values = {name: settings[part] for part, name in _OF_BOOT.items() if part in settings}
    given = any(name in values for name in QOS)
    values["explicitQosEnabled"] = settings.get("qos", str(given).lower())
    template = template_of(values)
    template.json = True  # Spring Boot gives the template the converter that is a bean
    return template


def template_of_bean(made: Made) -> Template:
    """Return the settings for the setters of a ``JmsTemplate``."""
    values = {name: value for name in _READ if (value := made.text(name)) is not None}
    values["explicitQosEnabled"] = str(has_qos(made)).lower()
    qos = made.one("qosSettings")
    if qos is not None:
        given = [one.value for one in qos.only.made.arguments] if qos.only.made is not None else []
        values |= {k: v for k, v in zip(("deliveryMode", "priority", "timeToLive"), given, strict=False) if v}
    template = template_of(values)
    template.json = made.one("messageConverter") is not None
    default = made.one("defaultDestination")
    if default is not None and default.only.made is not None:
        template.destination = _name_of(default.only.made) or template.destination
    template.open += _unsure(made, [*_READ, "explicitQosEnabled"])
    if default is not None and not template.destination:
        template.open.append("the default destination of the template is not a literal")
    if qos is not None and (qos.conditional or qos.only.made is None or len(qos.only.made.arguments) != 3):
        template.open.append("the qosSettings of the template are not literals")
    return template


def has_qos(made: Made) -> bool:
    """Return whether Java reads the priority, the time to live and the delivery mode of a ``JmsTemplate``."""
    return made.text("explicitQosEnabled") == "true" or made.one("qosSettings") is not None


def _unsure(made: Made, names: Iterable[str]) -> list[str]:
    return [f"the setting {name} of the template is not a literal" for name in names if made.unsure(name)]


def _name_of(made: Made) -> str:
    given = made.arguments[0].value if made.arguments else None
    prefix = {"topic": "topic://", "queue": "queue://"}.get(made.kind, "")
    return f"{prefix}{given}" if prefix and given else ""
