"""AMQP 1.0: the message codec, and the provider on the sans-IO engine of python-qpid-proton."""
