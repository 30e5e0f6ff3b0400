"""AMQP 1.0: the message codec, and the provider on an engine without sockets, our own or python-qpid-proton."""
