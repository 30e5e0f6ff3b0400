"""The tasks of a shop. Worker: ``celery -A shop worker``; clock: ``celery -A shop beat``."""

import os

from celery import Celery

import pyjmsack.kombu  # noqa: F401 - makes the scheme jms+amqp known

URL = os.environ.get("PYJMSACK_URL", "amqp://localhost:5672")

app = Celery("shop", broker=f"jms+{URL}", backend="rpc://")
app.conf.update(
    task_default_queue="shop",
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    worker_redirect_stdouts=False,  # print as a program does, not to the log
    broker_transport_options={"native_eta": True},
    beat_schedule={"count": {"task": "shop.count_stock", "schedule": 2.0}},
)


@app.task(name="shop.price")
def price(net, tax):
    return round(net * (1 + tax), 2)


@app.task(name="shop.count_stock")
def count_stock():
    print("the stock is counted", flush=True)
