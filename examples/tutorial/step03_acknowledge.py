from pyjmsack import AckMode, ConnectionFactory

factory = ConnectionFactory("amqp://localhost:5672")

with factory.create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
    consumer = context.create_consumer(context.create_queue("tutorial.orders"))
    message = consumer.receive(timeout=5)
    print("first program:", message.text)
    # the program ends here, without message.accept(): the broker keeps the message

with factory.create_context(AckMode.INDIVIDUAL_ACKNOWLEDGE) as context:
    consumer = context.create_consumer(context.create_queue("tutorial.orders"))
    message = consumer.receive(timeout=5)
    print("second program:", message.text)
    message.accept()  # tells the broker to forget the message
