"""``pyjmsack migrate``: makes a report and Python code from the configuration of a Java service."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import click

from pyjmsack import AckMode, ConnectionFactory, JMSException, Queue, Topic
from pyjmsack.cli.errors import explain as explained_error
from pyjmsack.cli.terminal import visible, visible_json
from pyjmsack.explain import Explanation, Fact, explain
from pyjmsack.migrate import (
    PLAIN,
    Factory,
    Findings,
    Listener,
    Row,
    Schedule,
    Settings,
    Unreadable,
    as_app,
    as_environment,
    as_python,
    as_toml,
    destination_of,
    open_text,
)
from pyjmsack.migrate import migrate as migrated

__all__ = ["migrate"]

_SOMETHING_LEFT = 1
_UNREADABLE = 2
_EMITTERS: Mapping[str, Callable[[Findings], str]] = {
    "app": as_app,
    "py": as_python,
    "toml": as_toml,
    "env": as_environment,
}
_CHECK_MILLIS = 10_000
_ROLLS_BACK = Fact("a listener raises", "the generated code rolls back: the message comes again, counted", "S80")


def _pairs(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise click.BadParameter(f"expected NAME=VALUE, not {wrong[0]}", param=parameter)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _ports(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[int, int]:
    made = {}
    for old, new in _pairs(context, parameter, values).items():
        if not (old.isdecimal() and new.isdecimal() and 0 < int(new) < 65536):
            raise click.BadParameter(f"expected OLD=NEW, such as 61616=5672, not {old}={new}", param=parameter)
        made[int(old)] = int(new)
    return made


@click.command()
@click.argument("inputs", metavar="[PATH|URL]...", nargs=-1)
@click.option("--to", "protocol", type=click.Choice(["amqp", "stomp"]), default="amqp", show_default=True)
@click.option("--broker", type=click.Choice(["artemis", "classic-5", "classic-6"]), help="The broker at the URL.")
@click.option("--port", "ports", multiple=True, callback=_ports, metavar="OLD=NEW", help="Ports, as in 61616=5672.")
@click.option(
    "--java", "sources", multiple=True, type=click.Path(exists=True, path_type=Path), help="Folder with Java sources."
)
@click.option("-D", "variables", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="A value for ${NAME}.")
@click.option("--emit", type=click.Choice([*_EMITTERS]), help="Print only an App, plain JMS, TOML, or variables.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--check", is_flag=True, help="Connect with each new URL and the logins in the variables of --emit env.")
@click.pass_context
def migrate(
    context: click.Context,
    inputs: tuple[str, ...],
    protocol: str,
    broker: str | None,
    ports: dict[int, int],
    sources: tuple[Path, ...],
    variables: dict[str, str],
    emit: str | None,
    as_json: bool,
    check: bool,
) -> None:
    """Report the Python setting for each setting of a Java or Spring service, and write the Python code.

    The command reads broker URLs; jndi.properties of ActiveMQ Classic, Artemis and Qpid JMS; application.properties
    and .yml of Spring Boot and Camel; Spring's XML; activemq.xml and broker.xml; Java sources; and whole folders. It
    opens a connection only with --check. It never prints a password, and writes an environment variable in the place
    of each password.

    \b
    Examples:
      pyjmsack migrate 'failover:(tcp://a:61616,tcp://b:61616)?randomize=false'
      pyjmsack migrate --broker artemis src/main/resources
      pyjmsack migrate --emit app service/ > service.py
      pyjmsack migrate --check -D BROKER_HOST=mq1 application.yml

    \b
    Exit codes: 0 everything is replaced, 1 something is left to do by hand or is refused (or --check failed),
    2 something could not be read.
    """
    if not inputs and not sources:
        raise click.UsageError("give a broker URL, a file or a folder; `pyjmsack migrate --help` has examples")
    settings = Settings(protocol, broker or "", ports, variables)
    try:
        findings = migrated(inputs, settings, sources)
    except Unreadable as error:
        raise click.UsageError(visible(str(error))) from None
    checks = {factory.name: _connected(factory) for factory in findings.factories if factory.url} if check else {}
    if emit:
        click.echo(_EMITTERS[emit](findings).encode(), nl=False)  # Python and TOML are UTF-8, whatever the locale
        for row in findings.rows:
            if row.verdict.open:
                click.echo(visible(f"left: {open_text(row)}"), err=True)
        _complain(findings)
    elif as_json:
        click.echo(visible_json(json.dumps(_document(findings, checks), ensure_ascii=False)))
    else:
        _show(findings, checks)
    context.exit(_exit_code(findings, checks))


def _exit_code(findings: Findings, checks: Mapping[str, str]) -> int:
    if findings.unreadable:
        return _UNREADABLE
    left = any(row.verdict.open for row in findings.rows)
    failed = any(not said.startswith("connected") for said in checks.values())
    return _SOMETHING_LEFT if left or failed else 0


def _explanations(findings: Findings) -> Iterator[tuple[Listener, Explanation]]:
    factories = {factory.name: factory for factory in findings.factories if factory.url}
    for listener in findings.listeners:
        factory = factories.get(listener.factory) or next(iter(factories.values()), None)
        if factory is None:
            continue
        name = destination_of(listener, factory)
        destination = Topic(name) if listener.topic else Queue(name)
        broker = factory.broker if factory.broker in ("artemis", "classic-5", "classic-6") else "unknown"
        try:
            yield listener, _of_the_code(explain(factory.url, listener.mode, destination, broker))
        except JMSException:
            continue  # another row of the report has the same error already


def _of_the_code(explanation: Explanation) -> Explanation:
    """Return the explanation for the generated code, which rolls back when a listener raises. A plain session does not
    roll back by itself.
    """
    if explanation.mode is not AckMode.SESSION_TRANSACTED:
        return explanation
    facts = tuple(_ROLLS_BACK if fact.about == _ROLLS_BACK.about else fact for fact in explanation.facts)
    return replace(explanation, facts=facts)


def _document(findings: Findings, checks: Mapping[str, str]) -> dict[str, object]:
    rows = [
        {"file": row.place.file, "line": row.place.line, "key": row.key, "value": row.value}
        | {"verdict": row.verdict.value, "python": row.python, "why": row.why}
        for row in findings.rows
    ]
    explained = [
        {"listener": listener.name, "facts": [asdict(fact) for fact in explanation.facts]}
        for listener, explanation in _explanations(findings)
    ]
    return {
        "rows": rows,
        "factories": [_plain(factory) | {"check": checks.get(factory.name, "")} for factory in findings.factories],
        "listeners": [_plain(listener) for listener in findings.listeners],
        "schedules": [_plain(schedule) for schedule in findings.schedules],
        "explanations": explained,
        "unreadable": findings.unreadable,
        "other_keys": findings.other_keys,
        "python": as_python(findings) if findings.factories else "",
    }


def _plain(found: Factory | Listener | Schedule) -> dict[str, object]:
    made = asdict(found)
    made["place"] = str(found.place)
    if isinstance(found, Listener):
        made["mode"] = found.mode.name
    return made


def _show(findings: Findings, checks: Mapping[str, str]) -> None:
    file = ""
    for row in findings.rows:
        if row.why == PLAIN:
            continue  # a broker's file has hundreds of such rows; the summary counts them, and --json has them
        if row.place.file != file:
            file = row.place.file
            click.echo(visible(f"\n{file}" if file else ""))
        click.echo(visible(_line(row)))
    for factory in findings.factories:
        said = f" ({checks[factory.name]})" if factory.name in checks else ""
        click.echo(visible(f"\nURL of {factory.name}{said}:\n  {factory.url}"))
    for listener, explanation in _explanations(findings):
        click.echo(visible(f"\n{listener.name} ({explanation.mode.name} on {explanation.destination}):"))
        for fact in explanation.facts:
            click.echo(visible(f"  {fact.about}: {fact.text}"))
    if findings.factories:
        click.echo(f"\nPython (`--emit py` prints it alone):\n\n{visible(as_python(findings))}")
    _summary(findings)
    _complain(findings)


def _line(row: Row) -> str:
    line = f"{row.place.line:>5} " if row.place.line else "      "
    value = f" = {row.value}" if row.value else ""
    python = f" -> {row.python}" if row.python else ""
    why = f"\n{'':21}{row.why}" if row.why else ""
    return f"{line}{row.verdict.value:<9}{'':5} {row.key}{value}{python}{why}"


def _summary(findings: Findings) -> None:
    counts = Counter(row.verdict.value for row in findings.rows)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing about messaging"
    click.echo(f"{findings.files} read: {listed}.")
    if findings.other_keys:
        click.echo(f"{findings.other_keys} keys or beans are about something else and were not looked at.")


def _complain(findings: Findings) -> None:
    for text in findings.unreadable:
        click.echo(visible(f"not read: {text}"), err=True)


def _connected(factory: Factory) -> str:
    """Connect once, and return the result as a line for the report."""
    wanted = [*([factory.user_variable] if factory.asks_for_user else []), *factory.secrets.values()]
    missing = [variable for variable in wanted if not os.environ.get(variable)]
    if missing:
        return f"not tried: set {', '.join(missing)}"
    password = os.environ.get(factory.secrets.get("jms.password", ""), None)
    options: dict[str, object] = {
        option: os.environ[variable] for option, variable in factory.secrets.items() if option != "jms.password"
    }
    options |= {"jms.connectTimeout": _CHECK_MILLIS, "jms.closeTimeout": _CHECK_MILLIS}
    if factory.url.startswith("failover:"):
        options |= {"failover.startupMaxReconnectAttempts": 1}
    try:
        username = factory.username or (os.environ[factory.user_variable] if factory.asks_for_user else None)
        made = ConnectionFactory(factory.url, username=username, password=password, options=options)
        with made.create_connection() as connection:
            metadata = connection.metadata
            return f"connected to {metadata.broker_name} {metadata.broker_version} over {metadata.protocol}"
    except JMSException as error:
        return explained_error(error)
