"""A broker with users: who gets in, and where the passwords are not."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest
from proton import ConnectionException, Message
from proton.utils import BlockingConnection

from pyjmsack.broker import EmbeddedArtemis

USERS = {"alice": "s3cret word", "bob = ü:#": "pä:ss\\=ENC(x) ☃"}


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedArtemis]:
    with EmbeddedArtemis(users=USERS) as broker:
        yield broker


@pytest.fixture(scope="module")
def with_guests() -> Iterator[EmbeddedArtemis]:
    with EmbeddedArtemis(users=USERS, allow_anonymous=True) as broker:
        yield broker


def log_in(
    broker: EmbeddedArtemis, user: str | None = None, password: str | None = None, mechanism: str = "PLAIN"
) -> None:
    """Log in and send: this broker refuses an anonymous login only after it has opened the connection."""
    connection = BlockingConnection(broker.amqp_url, timeout=10, user=user, password=password, allowed_mechs=mechanism)
    try:
        connection.create_sender("security").send(Message("x"))
    finally:
        connection.close()


@pytest.mark.parametrize("user", USERS)
def test_the_right_password_is_accepted(secured: EmbeddedArtemis, user: str) -> None:
    log_in(secured, user=user, password=USERS[user])


@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_a_wrong_login_is_refused(secured: EmbeddedArtemis, user: str) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(secured, user=user, password="wrong")


def test_an_anonymous_login_is_refused_by_default(secured: EmbeddedArtemis) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(secured, mechanism="ANONYMOUS")


def test_an_anonymous_login_can_be_allowed(with_guests: EmbeddedArtemis) -> None:
    log_in(with_guests, mechanism="ANONYMOUS")
    log_in(with_guests, user="alice", password=USERS["alice"])


def test_a_wrong_password_does_not_make_a_guest(with_guests: EmbeddedArtemis) -> None:
    with pytest.raises(ConnectionException, match="unauthorized-access"):
        log_in(with_guests, user="alice", password="wrong")


def test_the_logins_survive_a_restart() -> None:
    with EmbeddedArtemis(users=USERS) as broker:
        broker.kill()
        broker.restart()
        log_in(broker, user="alice", password=USERS["alice"])


def test_passwords_are_neither_shown_nor_stored(secured: EmbeddedArtemis) -> None:
    log_in(secured, user="alice", password=USERS["alice"])
    everywhere = [repr(secured), repr(vars(secured))]
    everywhere += [path.read_text(errors="replace") for path in (secured.data_dir / "etc").iterdir()]
    everywhere.append(secured.log_path.read_text())
    for password in USERS.values():
        assert not [text for text in everywhere if password in text]


def test_the_files_with_logins_are_for_their_owner_only(secured: EmbeddedArtemis) -> None:
    for name in ("users.properties", "roles.properties"):
        assert stat.S_IMODE((secured.data_dir / "etc" / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("users", [{"": "x"}, {"a": ""}, {"a,b": "x"}, {" a": "hidden"}])
def test_a_login_that_the_brokers_files_cannot_hold_is_refused(users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="users: a name needs") as caught:
        EmbeddedArtemis(users=users)
    assert "hidden" not in str(caught.value)
