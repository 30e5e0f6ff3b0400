from pyjmsack import ConnectionFactory

with ConnectionFactory("amqp://localhost:5672").create_context() as context:
    orders = context.create_queue("tutorial.orders")
    producer = context.create_producer(orders)
    for order, country in (("six chains", "FR"), ("seven locks", "DE")):
        message = context.create_text_message(order)
        message.properties["country"] = country
        producer.send(message, time_to_live=600)  # seconds; the broker drops the message after that

    german = context.create_consumer(orders, "country = 'DE'")
    print("for the German worker:", german.receive_body(str, timeout=5))
    print("still waiting:", [message.text for message in context.create_browser(orders)])
