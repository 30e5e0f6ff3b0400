from pyjmsack import ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context() as context:
    orders = context.create_queue("tutorial.orders")
    waiting = [message.text for message in context.create_browser(orders)]
    print("waiting:", waiting)

    consumer = context.create_consumer(orders)
    message = consumer.receive(timeout=5)  # None after five seconds without a message
    print("received:", message.text)
