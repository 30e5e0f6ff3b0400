"""Kill a broker under load, and write the picture in ``docs/failover.md`` from what was measured.

``python docs/make_failover_picture.py`` takes half a minute. It starts a broker of its own.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from pyjmsack import AckMode, Connection, ConnectionFactory, Queue
from pyjmsack.broker import EmbeddedArtemis

PICTURE = Path(__file__).with_name("failover.svg")
RATE, SECONDS, KILLED_AT, DOWN = 150, 16.0, 4.0, 1.0
"""Messages a second, how long they are sent, when the broker is killed, and when it is started again after that."""
BIN = 0.25
"""Seconds of one step of the chart."""
WIDTH, HEIGHT, LEFT, TOP, FLOOR = 840, 360, 60, 72, 304
SENT, TAKEN = "#1f77b4", "#d95f02"


@dataclass
class Run:
    """What was measured, in seconds since the beginning."""

    began: float = field(default_factory=time.monotonic)
    sent: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    events: dict[str, float] = field(default_factory=dict)

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.began

    def on_connection_restored(self, url: str) -> None:
        """Note the time, as the listener of both connections: the later one counts."""
        self.events["both clients are back"] = self.now()


def send(connection: Connection, run: Run) -> None:
    """Send at a constant rate. A message counts when the broker has confirmed it."""
    with connection.create_session() as session:
        producer = session.create_producer(Queue("failover.picture"))
        for number in range(int(RATE * SECONDS)):
            time.sleep(max(0.0, number / RATE - run.now()))
            producer.send_async(str(number)).add_done_callback(lambda _: run.sent.append(run.now()))
        session.close()  # waits for the confirmations


def take(connection: Connection, run: Run) -> None:
    """Receive until all messages came. A message counts when it is processed."""
    seen: Counter[str] = Counter()
    expected = int(RATE * SECONDS)
    connection.start()
    with connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE) as session:
        consumer = session.create_consumer(Queue("failover.picture"))
        while len(seen) < expected and (message := consumer.receive(30)) is not None:
            seen[str(message.body)] += 1
            message.acknowledge()
            run.taken.append(run.now())
    run.lost, run.doubled = expected - len(seen), len(run.taken) - len(seen)


def measure(broker: EmbeddedArtemis, ledger: Path | None = None) -> Run:
    """Run a sender and a receiver, kill the broker in the middle, and start it again."""
    factory = ConnectionFactory(f"failover:({broker.amqp_url})?failover.initialReconnectDelay=50", ledger=ledger)
    with factory.create_connection() as one, factory.create_connection() as other:
        run = Run()
        workers = [threading.Thread(target=send, args=(one, run)), threading.Thread(target=take, args=(other, run))]
        for worker in workers:
            worker.start()
        for connection in (one, other):
            connection.add_connection_listener(run)
        time.sleep(KILLED_AT - run.now())
        run.events["broker killed (SIGKILL)"] = run.now()
        broker.kill()
        time.sleep(DOWN)
        run.events["broker starts again"] = run.now()
        broker.restart()
        for worker in workers:
            worker.join()
        return run


def steps(times: list[float], end: float, top: int) -> str:
    """Return the path of a line with one step for each bin."""
    counts = Counter(int(each / BIN) for each in times)
    path = [f"M{across(0, end):.1f} {FLOOR}"]
    for place in range(int(end / BIN)):
        high = FLOOR - (FLOOR - TOP) * counts[place] / BIN / top
        path.append(f"V{high:.1f}H{across((place + 1) * BIN, end):.1f}")
    return "".join(path)


def across(seconds: float, end: float) -> float:
    """Return the horizontal place of a moment."""
    return LEFT + (WIDTH - LEFT - 24) * seconds / end


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Return a text of the picture."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def draw(run: Run) -> str:
    """Return the picture as SVG."""
    end = max(SECONDS, int(max(run.taken)) + 1.0)
    highest = max(count for times in (run.sent, run.taken) for count in Counter(int(t / BIN) for t in times).values())
    top = -(-int(highest / BIN / 0.7) // 200) * 200  # room for the words above the lines
    killed, back = run.events["broker killed (SIGKILL)"], run.events["both clients are back"]
    said = (
        f"{len(run.sent):,} messages confirmed, {len(run.taken):,} processed: "
        f"{run.lost} lost, {run.doubled} processed twice"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#222">',
        f"<title>A failover on a time line. {escape(said)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>',
        f'<rect x="{across(killed, end):.1f}" y="{TOP}" width="{across(back, end) - across(killed, end):.1f}" '
        f'height="{FLOOR - TOP}" fill="#fde7e7"/>',
    ]
    for value in range(0, top + 1, top // 4):
        y = FLOOR - (FLOOR - TOP) * value / top
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 24}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y + 4, f"{value:,}", 'text-anchor="end"'))
    for second in range(0, int(end) + 1, 2):
        parts.append(text(across(second, end), FLOOR + 20, f"{second} s", 'text-anchor="middle"'))
    parts.append(f'<path d="{steps(run.sent, end, top)}" fill="none" stroke="{SENT}" stroke-width="2"/>')
    parts.append(
        f'<path d="{steps(run.taken, end, top)}" fill="none" stroke="{TAKEN}" stroke-width="2" stroke-dasharray="5 3"/>'
    )
    for place, (name, moment) in enumerate(sorted(run.events.items(), key=lambda event: event[1])):
        x, y = across(moment, end), TOP + 16 + 18 * place
        parts.append(f'<path d="M{x:.1f} {TOP}V{FLOOR}" stroke="#b00"/>')
        parts.append(text(x + 5, y, f"{moment:.1f} s: {name}", 'fill="#900"'))
    parts.append(text(LEFT, 24, f"messages a second ({RATE} are to be sent)", 'font-weight="600"'))
    parts.append(text(LEFT, 48, "— sent and confirmed", f'fill="{SENT}"'))
    parts.append(text(LEFT + 170, 48, "- - received and acknowledged", f'fill="{TAKEN}"'))
    parts.append(text(LEFT, HEIGHT - 12, f"{said} (Artemis, AMQP)"))
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Measure, and write the picture. Nothing is written if a message is lost."""
    with EmbeddedArtemis() as broker:
        run = measure(broker)
    if run.lost:
        raise SystemExit(f"{run.lost} messages were lost")
    PICTURE.write_text(draw(run), encoding="utf-8")


if __name__ == "__main__":
    main()
