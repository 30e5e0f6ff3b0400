"""Look at dead letters as a table, and send those back that can work now."""

from __future__ import annotations

import os
import tempfile

from pyjmsack import AckMode, ConnectionFactory, Queue
from pyjmsack.spark import local_session
from pyjmsack.spark.replay import dead_letters, send_back

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")
QUEUE = "examples.spark.payments"


def fail_payments() -> None:
    with ConnectionFactory(URL).create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
        producer = context.create_producer(Queue(QUEUE))
        for number in range(6):
            payment = context.create_text_message(f"payment {number}")
            payment.properties["currency"] = "EUR" if number % 2 else "XXX"
            producer.send(payment)
        with context.create_consumer(Queue(QUEUE)) as consumer:
            for _ in range(6):
                refused = consumer.receive(timeout=5)
                assert refused is not None
                refused.reject()  # to the dead-letter queue


def main() -> None:
    fail_payments()
    spark = local_session()
    with tempfile.TemporaryDirectory() as home:
        letters = dead_letters(
            spark,
            url=URL,
            queue="DLQ",
            selector=f"_AMQ_ORIG_ADDRESS = '{QUEUE}'",
            spoolLocation=home,
            drainId="payments",  # the same id reads the same letters again, after a crash for example
        )
        for row in letters.groupBy("properties.currency").count().orderBy("currency").collect():
            print(f"{row['count']} dead letters in {row.currency}")
        send_back(letters.where("properties.currency = 'EUR'"), url=URL)
    with ConnectionFactory(URL).create_context() as context, context.create_browser(Queue(QUEUE)) as browser:
        print(f"{sum(1 for _ in browser)} payments back in the queue")


if __name__ == "__main__":
    main()
