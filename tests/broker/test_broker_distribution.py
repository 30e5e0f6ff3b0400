"""The distribution: fetched once, checked, unpacked whole or not at all."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path

import pytest
from broker_support import FAKE_NAME, FAKE_VERSION, FakeMaven, fake_archive

from pyjmsack.broker import BrokerError, EmbeddedArtemis
from pyjmsack.broker.artemis_distribution import ensure_artemis
from pyjmsack.broker.distribution import Distribution, cache_directory


def ensure(maven: FakeMaven, sha512: str | None = None) -> Distribution:
    return ensure_artemis(FAKE_VERSION, sha512=sha512 or maven.sha512)


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_the_distribution_is_fetched_once(maven: FakeMaven, cache: Path) -> None:
    first, second = ensure(maven), ensure(maven)
    assert first == second
    assert maven.downloads == 1
    assert first.class_path == f"{first.home}/lib/a.jar:{first.home}/lib/b.jar"
    assert names(cache) == {FAKE_NAME, first.home.name, "download.lock"}


def test_only_libraries_and_licence_are_unpacked(maven: FakeMaven, cache: Path) -> None:
    assert names(ensure(maven).home) == {"lib", "LICENSE", "pyjmsack-manifest.json"}


def test_a_wrong_hash_is_refused_and_the_file_removed(maven: FakeMaven, cache: Path) -> None:
    with pytest.raises(BrokerError) as caught:
        ensure(maven, sha512="0" * 128)
    text = str(caught.value)
    for expected in (FAKE_NAME, maven.sha512, "0" * 128, "Start again to fetch it anew"):
        assert expected in text
    assert names(cache) == {"download.lock"}


def test_a_wrong_hash_stops_the_start_of_a_broker(maven: FakeMaven, cache: Path, temporary_root: Path) -> None:
    broker = EmbeddedArtemis(version=FAKE_VERSION, sha512="0" * 128)
    with pytest.raises(BrokerError, match="SHA-512"):
        broker.start()
    assert not broker.running
    assert names(temporary_root) == set()


def test_a_damaged_archive_in_the_cache_is_fetched_anew(
    maven: FakeMaven, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.mkdir()
    (cache / FAKE_NAME).write_bytes(fake_archive()[:-20])
    assert ensure(maven).class_path
    assert maven.downloads == 1
    assert "Fetching it anew" in caplog.text


def test_an_archive_placed_by_hand_needs_no_network(maven: FakeMaven, cache: Path) -> None:
    cache.mkdir()
    assert isinstance(maven.payload, bytes)
    (cache / FAKE_NAME).write_bytes(maven.payload)
    assert ensure(maven).class_path
    assert maven.downloads == 0


@pytest.mark.parametrize("damage", ["missing jar", "short jar", "extra jar", "no manifest", "empty manifest"])
def test_a_damaged_tree_heals_without_network(maven: FakeMaven, cache: Path, damage: str) -> None:
    home = ensure(maven).home
    jar, manifest = home / "lib" / "a.jar", home / "pyjmsack-manifest.json"
    if damage == "missing jar":
        jar.unlink()
    elif damage == "short jar":
        jar.write_bytes(b"j")
    elif damage == "extra jar":
        (home / "lib" / "intruder.jar").touch()
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_bytes(b"")
    healed = ensure(maven).home
    assert names(healed / "lib") == {"a.jar", "b.jar"}
    assert (healed / "lib" / "a.jar").read_bytes() == b"jar"
    assert maven.downloads == 1
    assert names(cache) == {FAKE_NAME, home.name, "download.lock"}


def test_without_network_the_error_names_the_file_and_where_to_place_it(maven: FakeMaven, cache: Path) -> None:
    maven.payload = OSError("no route to host")
    with pytest.raises(BrokerError, match=rf"no route to host.*place {FAKE_NAME} in {cache}") as caught:
        ensure(maven, sha512="0" * 128)
    assert caught.value.__cause__ is maven.payload


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setitem(sys.modules, "jgo.maven", None)
    with pytest.raises(BrokerError, match=r"pip install 'pyjmsack\[broker\]'"):
        ensure_artemis()


def test_an_unknown_version_is_refused_with_the_known_ones(cache: Path) -> None:
    with pytest.raises(BrokerError, match=r"Artemis 1\.2\.3 .* this release knows the SHA-512 of 2\.56\.0 only"):
        ensure_artemis("1.2.3")


def test_the_download_is_one_log_line_when_standard_error_is_no_terminal(
    maven: FakeMaven, cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", output := io.StringIO())
    with caplog.at_level(logging.INFO, "pyjmsack.broker"):
        ensure(maven)
    assert [record.getMessage() for record in caplog.records] == [f"downloading {FAKE_NAME} (0 MB)"]
    assert output.getvalue() == ""


def test_the_download_is_a_bar_on_a_terminal(maven: FakeMaven, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    ensure(maven)
    assert f"Downloading {FAKE_NAME}" in terminal.getvalue()


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYJMSACK_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "pyjmsack"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "pyjmsack"
    monkeypatch.setenv("PYJMSACK_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


def test_a_cache_that_cannot_be_made_names_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PYJMSACK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BrokerError, match="set PYJMSACK_CACHE"):
        cache_directory()


def test_a_cache_path_that_java_cannot_use_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYJMSACK_CACHE", str(tmp_path / "a:b"))
    with pytest.raises(BrokerError, match="':' in it"):
        cache_directory()
