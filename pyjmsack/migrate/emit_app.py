"""Writes the findings as a service in Python: an ``App`` with a function for each listener and each schedule."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyjmsack.migrate.bodies import KNOWN, OURS, STANDARD, used_classes
from pyjmsack.migrate.emit import Names, comment, login, named
from pyjmsack.migrate.java_classes import ENUM
from pyjmsack.migrate.java_parameters import snake
from pyjmsack.migrate.model import Factory, Findings, Function, Listener, Schedule
from pyjmsack.migrate.remarks import Remarks, remark
from pyjmsack.migrate.serving import CLIENT_ID, needs_client_id, other_queue
from pyjmsack.types import AckMode

__all__ = ["as_app"]

_MODES: Final = {
    AckMode.SESSION_TRANSACTED: "transacted",
    AckMode.NO_ACKNOWLEDGE: "no-ack",
}
_CLIENT_ID_OF_URL: Final = re.compile(r"(?<=[?&])jms\.clientID=([^&]*)&?")
_WORD: Final = re.compile(r"\b[A-Za-z_]\w*\b")
_STRICT: Final = (
    "Records of Java take JSON without some of their components. A dataclass takes JSON only if the JSON has each field"
    " that has no default: write `| None = None` behind each field that may be missing or null."
)
_RETRIES: Final = {"activemq": "Retry(6, delay=1, backoff=1)", "artemis": "Retry(delay=0)", "qpid": "Retry(delay=0)"}
"""For each Java client: the ``Retry`` that treats a rolled back message as this client does. The clients of Artemis and
Qpid JMS leave the waits and the limit to the broker. The client of ActiveMQ Classic delivers the message up to six more
times, each time after one second.
"""


def as_app(findings: Findings) -> str:
    """Return the code of a module with an ``App`` for each used connection factory, and a function for each listener,
    each schedule, and each method that sends. A comment at each place says what the user has to do there.

    Args:
        findings: what :func:`pyjmsack.migrate.migrate` returned.
    """
    classes = used_classes(findings)
    apps = _apps(findings)
    taken = Names({"logging", "os", "json", "field", "converter", *KNOWN, *classes, *(app for app, _, _ in apps)})
    remarks = Remarks(findings, {factory.name: app for app, factory, _ in apps if factory is not None}, apps[0][0])
    camel = findings.camel_case
    strict = any(fields and name in findings.records for name, fields in classes.items())
    body: list[str] = [remark(_STRICT)] if strict else []
    for name, fields in classes.items():
        body += _class(name, fields, camel, remarks.of_class(name))
    converter = _converter(findings, classes)
    body += [converter] if converter else []
    others = [
        factory for factory in findings.factories if factory.name not in {each.name for _, each, _ in apps if each}
    ]
    for number, (name, factory, _) in enumerate(apps):
        body.append(_app(name, factory, bool(converter), [] if number else others))
    body += _functions(findings, apps, remarks, taken)
    body.append(_main([name for name, _, _ in apps]))
    left = remarks.others()  # comments that have no other place
    text = "\n\n".join([*([left] if left else []), *body])
    return f'"""Made by `pyjmsack migrate`. Secrets come from the environment."""\n\n{_imports(text)}\n\n{text}'


def _functions(
    findings: Findings, apps: list[tuple[str, Factory | None, list[Listener]]], remarks: Remarks, taken: Names
) -> Iterator[str]:
    """Yield the functions: error handlers, listeners, schedules, and methods that send."""
    handlers: dict[str, str] = {}
    for bean in dict.fromkeys(each.on_error for each in (*findings.listeners, *findings.nameless) if each.on_error):
        handlers[bean] = taken.new(f"on_error_of_{snake(bean)}")
        yield _error_handler(handlers[bean], bean, remarks.of_key(f"{bean}.errorHandler"))
    for name, factory, listeners in apps:
        for listener in listeners:
            code = remarks.of_function(remarks.function(listener.place))
            yield _listener(name, factory, listener, handlers, taken, code)
    for listener in findings.nameless:  # listeners without a known destination
        name, factory, _ = next((app for app in apps if app[1] and app[1].name == listener.factory), apps[0])
        code = remarks.of_function(remarks.function(listener.place))
        text = _listener(name, factory, listener, handlers, taken, code)
        yield "".join(f"# {line}\n" for line in text.splitlines())
    for schedule in findings.schedules:
        yield _schedule(apps[0][0], schedule, taken, remarks.of_function(remarks.function(schedule.place)))
    for function in remarks.left_functions():
        yield _function(function, taken, remarks.of_function(function))


def _apps(findings: Findings) -> list[tuple[str, Factory | None, list[Listener]]]:
    """Return the name, the factory and the listeners of each app."""
    factories = named(findings.factories)
    by_name = {factory.name: key for key, factory in factories.items()}
    first = next(iter(factories), "")
    grouped: dict[str, list[Listener]] = {}
    for listener in findings.listeners:
        grouped.setdefault(by_name.get(listener.factory, first), []).append(listener)
    for send in (send for function in findings.functions for send in function.sends):
        grouped.setdefault(by_name.get(send.factory, next(iter(grouped), first)), [])
    if not grouped:
        grouped[first] = []
    names: dict[str, str] = {}
    made = Names()
    for key in grouped:
        plain = key.removesuffix("_factory").removesuffix("_connection") or "broker"
        names[key] = made.new(f"{plain}_app" if names else "app")
    return [(names[key], factories.get(key), listeners) for key, listeners in grouped.items()]


def _converter(findings: Findings, classes: Mapping[str, object]) -> str:
    """Return the code of the converter of the apps. Return an empty text if the default converter is enough."""
    arguments = []
    if findings.type_property:
        listed = "".join(f"    {text!r}: {kind},\n" for text, kind in findings.types.items() if kind in classes)
        arguments = [repr(findings.type_property), *([f"{{\n{listed}}}"] if listed else [])]
    arguments += ["camel_case=True"] if findings.camel_case else []
    return f"converter = JsonConverter({', '.join(arguments)})\n" if arguments else ""


def _class(name: str, fields: list[tuple[str, str]] | None, camel_case: bool, remarks: str) -> Iterator[str]:
    if fields and all(text.startswith(ENUM) for _, text in fields):
        yield f"{remarks}class {name}(Enum):\n" + "".join(f"    {field} {text}\n" for field, text in fields)
    elif fields is None:
        told = '"""A class of Java: write its fields here, named as in JSON."""'
        yield f"{remarks}@dataclass\nclass {name}:\n    {told}\n"
    else:
        listed = "".join(_field(field, annotation, camel_case) for field, annotation in fields)
        empty = all(keyword.iskeyword(field) for field, _ in fields) and not (camel_case and fields)
        yield f"{remarks}@dataclass\nclass {name}:\n{listed}{'    pass' + chr(10) if empty else ''}"


def _field(name: str, annotation: str, camel_case: bool) -> str:
    if keyword.iskeyword(name) and camel_case:
        return f"    {name}_: {annotation}\n"
    if keyword.iskeyword(name):
        return f"    # {name} is a keyword of Python: write a pydantic model with an alias\n"
    return f"    {name}: {annotation}\n"


def _app(name: str, factory: Factory | None, typed: bool, others: Iterable[Factory]) -> str:
    if factory is None:
        arguments = ['os.environ["PYJMSACK_URL"]']
    else:
        arguments = [repr(_without_client_id(factory.url)), *login(factory)]
    if typed:
        arguments.append("converter=converter")
    place = f"# {comment(str(factory.place))}\n" if factory is not None else ""
    for other in others:  # factories of a profile, and factories that no app uses
        url = comment(_without_client_id(other.url)) or "no URL: see the comment about it"
        place += f"# {comment(str(other.place))}: not used here, {comment(other.name)}: {url}\n"
    return f"{place}{name} = App(\n{''.join(f'    {each},{chr(10)}' for each in arguments)})\n"


def _without_client_id(url: str) -> str:
    """Return a URL without the option of the client id, because an app has several connections, which must not share an
    id.
    """
    return _CLIENT_ID_OF_URL.sub("", url).rstrip("?&")


def _listener(
    app: str, factory: Factory | None, listener: Listener, handlers: Mapping[str, str], taken: Names,
    code: tuple[str, str],
) -> str:  # fmt: skip
    arguments = [repr(listener.destination)]
    if listener.label:
        arguments.append(f"name={listener.label!r}")
    if listener.concurrency != "1":
        arguments.append(f"concurrency={listener.concurrency!r}")
    if listener.selector:
        arguments.append(f"selector={listener.selector!r}")
    arguments += _subscription(factory, listener)
    mode = _MODES.get(listener.mode, "individual")
    if mode != "transacted":
        arguments.append(f"mode={mode!r}")
    if mode == "transacted" and factory is not None and "redeliverypolicy." not in factory.url.lower():
        arguments.append(f"retry={_RETRIES[factory.client]}")
    if listener.on_error:
        arguments.append(f"on_error={handlers[listener.on_error]}")
    if listener.reply_to:
        name = repr(listener.reply_to)
        arguments.append(f"reply_to=Topic({name})" if listener.reply_topic else f"reply_to={name}")
    if not listener.autostart:
        arguments.append("autostart=False")
    name = taken.new(snake(listener.function) if listener.function else f"on_{listener.destination}")
    head = f"@{app}.listener({', '.join(arguments)})"
    if len(head) > 110:
        head = f"@{app}.listener(\n{''.join(f'    {each},{chr(10)}' for each in arguments)})"
    other = other_queue(listener, factory)
    told = remark(f"{listener.place}: {other}") if other else ""
    remarks, body = code
    if listener.answers and listener.answer:
        remarks += remark(f"{listener.place}: the answers of this listener have settings: {listener.answer}", "    ")
    return (
        f"{told}{head}\n"
        f"{_def(name, listener.parameters or [('message', 'Message')], listener.answers)}\n"
        f'    """{comment(str(listener.place))}"""\n{remarks}{body}'
    )


def _error_handler(name: str, bean: str, remarks: str) -> str:
    return (
        f'def {name}(error: BaseException, message: Message) -> None:\n    """The ErrorHandler of {comment(bean)}."""\n'
        f"{remarks}"
        '    logging.error("%s failed: %s", message.message_id, error)  # your code\n'
    )


def _schedule(app: str, schedule: Schedule, taken: Names, code: tuple[str, str]) -> str:
    name = taken.new(snake(schedule.function))
    return f'@{schedule.python(app)}\ndef {name}() -> None:\n    """{comment(str(schedule.place))}"""\n{"".join(code)}'


def _function(function: Function, taken: Names, code: tuple[str, str]) -> str:
    """Return the code of a method that sends, and that is neither a listener nor a schedule."""
    name = taken.new(snake(function.name))
    head = _def(name, function.parameters, function.answers)
    annotations = "".join(f", @{each}" for each in function.annotations)
    told = comment(f"{function.place}{annotations}")
    return f'{head}\n    """{told}"""\n{"".join(code)}'


def _def(name: str, parameters: list[tuple[str, str]], answers: str) -> str:
    """Return the head of a function, in several lines if the head is long."""
    given = [f"{each}: {annotation}" for each, annotation in _unique(parameters)]
    head = f"def {name}({', '.join(given)}) -> {answers or 'None'}:"
    if len(head) <= 110 or not given:
        return head
    return f"def {name}(\n{''.join(f'    {each},{chr(10)}' for each in given)}) -> {answers or 'None'}:"


def _subscription(factory: Factory | None, listener: Listener) -> Iterator[str]:
    if listener.topic:
        yield "topic=True"
    if listener.subscription:
        yield f"subscription={listener.subscription!r}"
        if listener.shared:
            yield "shared=True"
        if not listener.durable:
            yield "durable=False"
        of_url = _CLIENT_ID_OF_URL.search(factory.url) if factory is not None else None
        if listener.client_id or of_url:
            yield f"client_id={listener.client_id or (of_url[1] if of_url else '')!r}"
        elif needs_client_id(listener, [factory] if factory is not None else []):
            yield f'client_id=os.environ["{CLIENT_ID}"]'


def _unique(parameters: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    names = Names()
    for name, annotation in parameters:
        yield names.new(name), annotation


def _main(apps: list[str]) -> str:
    lines = ['if __name__ == "__main__":', "    logging.basicConfig(level=logging.INFO)"]
    first, others = apps[0], apps[1:]
    if others:
        return "\n".join([*lines, f"    with {', '.join(others)}:", f"        {first}.run()", ""])
    return "\n".join([*lines, f"    {first}.run()", ""])


def _imports(text: str) -> str:
    used = {*_WORD.findall(text)}
    lines = ["from __future__ import annotations", "", "import logging"]
    lines.insert(2, "import json") if "json.dumps(" in text else None
    lines += ["import os"] if "os.environ[" in text else []
    for module, names in STANDARD:
        here = [name for name in names if name in used]
        here += ["field"] if module == "dataclasses" and "field(default_factory=" in text else []
        if here:
            lines.append(f"from {module} import {', '.join(here)}")
    ours = [name for name in OURS if name in used]
    return "\n".join([*lines, "", f"from pyjmsack import {', '.join(ours)}", ""])
