"""Celery from nothing: a broker, a worker, beat, and a program that sends tasks. No Docker, no service.

With ``PYJMSACK_URL`` it takes that broker; else it starts one.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from pyjmsack.broker import EmbeddedArtemis

HERE = Path(__file__).parent


def start(*command):
    """Start a program of Celery in this folder."""
    program = [sys.executable, "-m", "celery", "--quiet", "-A", "shop", *command]
    return subprocess.Popen(program, cwd=HERE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - a fixed program


def main():
    worker = start("worker", "--pool", "solo", "--loglevel", "error")
    beat = start("beat", "--schedule", os.devnull, "--scheduler", "celery.beat:Scheduler", "--loglevel", "error")
    try:
        sys.path.insert(0, str(HERE))
        from shop import app, price

        results = [price.delay(net, 0.19) for net in (10, 20, 30)]
        results.append(price.apply_async((40, 0.19), countdown=1))
        for result in results:
            print("with tax:", result.get(timeout=30))
        for line in worker.stdout:
            if "counted" in line:
                print("beat:", line.strip())
                break
        app.backend.result_consumer.stop()
        app.close()
    finally:
        for program in (beat, worker):
            program.terminate()
            program.communicate(timeout=20)


with contextlib.ExitStack() as stack:
    if "PYJMSACK_URL" not in os.environ:
        os.environ["PYJMSACK_URL"] = stack.enter_context(EmbeddedArtemis()).amqp_url
    main()
