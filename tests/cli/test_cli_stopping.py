"""Signals and pipes: whatever ends a command, each message is written or still on the broker."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import WAIT, Cli, depth, first_lines, put, rest, take_all
from polling import wait_until

SENT = [f"message {number}" for number in range(3000)]


def assert_nothing_lost(written: list[str], left: list[tuple[str, bool]]) -> None:
    """Everything is written or left; what is both is marked as redelivered."""
    assert len(written) == len(set(written))
    assert sorted({*written, *(text for text, _ in left)}) == sorted(SENT)
    assert [text for text, redelivered in left if text in set(written) and not redelivered] == []


def left_after(cli: Cli, queue: str, written: list[str]) -> list[tuple[str, bool]]:
    """Take what the command left, which is at least what it did not write."""
    return take_all(cli.url, queue, wait_for=len(SENT) - len(written))


def code_after_more_signals(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM until the process ends: one that comes while another is pending may reach an idle thread only."""
    for _ in range(100):
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(WAIT / 100)
    raise AssertionError("it does not end")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "options",
    [("--ack-mode", "individual"), ("--ack-mode", "client"), ("--transaction", "50")],
    ids=lambda options: options[1],
)
def test_a_signal_in_the_middle_loses_nothing(
    cli: Cli, queue_name: str, signum: signal.Signals, options: tuple[str, ...]
) -> None:
    put(cli.url, queue_name, SENT)
    process = cli.start("receive", queue_name, "--follow", *options)
    written = first_lines(process, 120)
    process.send_signal(signum)
    more, err, code = rest(process)
    assert (code, err) == (0, "")
    left = left_after(cli, queue_name, written + more)
    assert left
    assert_nothing_lost(written + more, left)
    assert not {text for text, _ in left} & set(written + more)  # a clean stop acknowledges all that it wrote


def test_a_signal_while_nothing_comes_ends_it(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["one"])
    process = cli.start("receive", queue_name, "--follow")
    assert first_lines(process, 1) == ["one"]
    process.send_signal(signal.SIGTERM)
    assert rest(process) == ([], "", 0)
    assert take_all(cli.url, queue_name) == []


def test_ctrl_c_before_the_command_runs_shows_no_traceback() -> None:
    """The modules of all commands take a moment to read, and a person may know at once that the command is wrong."""
    program = (
        "import sys; from pyjmsack.__main__ import main\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pyjmsack.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_signal_while_a_file_is_written_loses_nothing(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    put(cli.url, queue_name, SENT)
    out = tmp_path / "out"
    process = cli.start("receive", queue_name, "--format", "file", "--output-dir", out)
    while not out.exists() or len(list(out.iterdir())) < 20:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert rest(process)[1:] == ("Error: SIGINT stopped the command before the end of its work\n", 130)
    written = [path.read_text() for path in out.glob("0*")]
    assert_nothing_lost(written, left_after(cli, queue_name, written))


@pytest.mark.parametrize("mode", ["individual", "client"])
def test_head_takes_its_lines_and_no_more(cli: Cli, queue_name: str, mode: str) -> None:
    put(cli.url, queue_name, SENT)
    process = cli.start("receive", queue_name, "--ack-mode", mode)
    head = subprocess.Popen(["head", "-n", "3"], stdin=process.stdout, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    out, _ = head.communicate(timeout=WAIT)
    assert process.wait(WAIT) == 0
    assert out.decode().splitlines() == SENT[:3]
    left = left_after(cli, queue_name, SENT[:3])
    if sys.platform == "linux":
        assert [text for text, _ in left] == SENT[3:]
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize(
    ("take", "said"),
    [
        (["--take"], "1 message taken from {queue}, and the others are still in the queue"),
        ([], "so not all messages were written; they are still in the queue"),
    ],
    ids=["take", "look"],
)
def test_an_export_whose_reader_ends_fails_and_says_how_many_messages_left_the_queue(
    cli: Cli, queue_name: str, take: list[str], said: str
) -> None:
    """With `--take` it said "Exported 2 messages" and ended with 0, without it said "Error: "."""
    put(cli.url, queue_name, SENT)
    process = cli.start("export", queue_name, *take)
    head = subprocess.Popen(["head", "-n", "1"], stdin=process.stdout, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    out, _ = head.communicate(timeout=WAIT)
    assert process.wait(WAIT) == 1
    assert len(out.splitlines()) == 1
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert errors.startswith("Error: the reader of standard output ended")
    left = left_after(cli, queue_name, SENT[:1] if take else [])
    if sys.platform == "linux":
        assert said.format(queue=queue_name) in errors
        assert [text for text, _ in left] == (SENT[1:] if take else SENT)


def test_a_reader_that_ends_in_a_transaction_gets_all_of_it_again(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, SENT)
    process = cli.start("receive", queue_name, "--transaction", "100")
    written = first_lines(process, 250)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(WAIT) == 0
    assert process.stderr is not None
    process.stderr.close()
    assert_nothing_lost(written, left_after(cli, queue_name, written))


def test_the_second_signal_ends_it_at_once_and_acknowledges_nothing_more(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, ["x" * 1_000_000])
    process = cli.start("receive", queue_name)  # nobody reads the pipe: it hangs in the middle of the message
    assert process.stdout is not None
    assert process.stdout.read(1) == b"x"
    process.send_signal(signal.SIGINT)
    assert code_after_more_signals(process) == 128 + signal.SIGTERM
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    assert [len(text) for text, _ in take_all(cli.url, queue_name, wait_for=1)] == [1_000_000]


def test_send_streams_for_ever_and_a_signal_ends_it(cli: Cli, queue_name: str) -> None:
    sender = cli.start("send", queue_name, stdin=subprocess.PIPE)
    receiver = cli.start("receive", queue_name, "--follow")
    assert sender.stdin is not None
    for text in ("one", "two"):
        sender.stdin.write(f"{text}\n".encode())
        sender.stdin.flush()
        assert first_lines(receiver, 1) == [text]
    sender.send_signal(signal.SIGINT)
    assert sender.wait(WAIT) == 130  # its standard input is still open
    _, err, _ = rest(sender)
    assert "Sent 2, confirmed 2" in err
    receiver.send_signal(signal.SIGINT)
    assert rest(receiver) == ([], "", 0)


def test_a_refused_send_ends_the_wait_for_input(cli: Cli, queue_name: str) -> None:
    sender = cli.start("send", f"limited.{queue_name}", stdin=subprocess.PIPE)
    assert sender.stdin is not None
    sender.stdin.write(b"1\n2\n3\n")
    sender.stdin.flush()
    assert sender.wait(WAIT) == 1
    assert "standard input, line 3: " in rest(sender)[1]


@pytest.mark.parametrize(
    "command",
    [
        ("export",),
        ("export", "--take"),
        ("copy", "{}.to", "--create", "--rate", "50", "--transaction", "10"),
        ("move", "{}.to", "--create", "--rate", "50", "--transaction", "10"),
    ],
    ids=" ".join,
)
def test_a_command_that_a_signal_stopped_lets_no_script_go_on(
    cli: Cli, queue_name: str, command: tuple[str, ...]
) -> None:
    """``export q f && purge q`` would destroy what is not in the file."""
    put(cli.url, queue_name, [*SENT, "x" * 1_000_000])
    verb, *more = command
    process = cli.start(verb, queue_name, *(each.format(queue_name) for each in more))
    if verb == "export":
        first_lines(process, 1)
    else:
        wait_until(lambda: depth(cli.url, f"{queue_name}.to") > 0 or process.poll() is not None, WAIT)
    process.send_signal(signal.SIGTERM)
    _, err, code = rest(process)
    assert code == 143, err
    assert err.endswith("Error: SIGTERM stopped the command before the end of its work\n")


def test_an_import_that_a_signal_stopped_says_so_and_can_go_on(cli: Cli, queue_name: str, tmp_path: Path) -> None:
    lines, progress = tmp_path / "lines", tmp_path / "progress"
    lines.write_text("".join(f'{{"kind": "text", "body": "{text}"}}\n' for text in SENT))
    resumed = "import", queue_name, lines, "--resume", progress, "--json"
    process = cli.start(*resumed, "--rate", "100", "--transaction", "10")
    wait_until(lambda: progress.exists() and json.loads(progress.read_text())["lines"] > 0, WAIT)
    process.send_signal(signal.SIGINT)
    out, _, code = rest(process)
    document = json.loads("".join(out))
    assert (code, document["error"]) == (130, "SIGINT stopped the command before the end of its work")
    assert 0 < document["sent"] < len(SENT)
    cli.ok(*resumed)
    assert [text for text, _ in take_all(cli.url, queue_name)] == SENT
