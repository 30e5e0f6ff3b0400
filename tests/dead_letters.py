"""Waiting for dead letters."""

from __future__ import annotations

from polling import wait_until

from pyjmsack import ConnectionFactory, Queue

__all__ = ["wait_for_dead_letters"]


def wait_for_dead_letters(url: str, queue: str, selector: str, count: int) -> None:
    """Block until a browser of ``queue`` sees ``count`` messages that the selector chooses.

    No broker says when a refused message is a dead letter. Artemis writes the letter to its disk first.
    """

    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        session = connection.create_session()

        def seen() -> int:
            with session.create_browser(Queue(queue), selector) as browser:
                return sum(1 for _ in browser)

        wait_until(lambda: seen() == count)
