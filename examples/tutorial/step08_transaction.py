from pyjmsack import AckMode, ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context(AckMode.SESSION_TRANSACTED) as context:
    orders, bills = context.create_queue("tutorial.orders"), context.create_queue("tutorial.bills")
    consumer, producer = context.create_consumer(orders), context.create_producer(bills)

    print("first try:", consumer.receive_body(str, timeout=5))
    producer.send("a wrong bill")
    context.rollback()  # the bill is not sent, and the order is back in its queue

    order = consumer.receive_body(str, timeout=5)
    print("second try:", order)
    producer.send(f"bill for {order}")
    context.commit()  # the order is gone and the bill is there, in one step

    print("bills:", [bill.text for bill in context.create_browser(bills)])
