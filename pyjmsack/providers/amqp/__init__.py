"""AMQP 1.0: the message codec, and the provider. The provider uses one of two engines without sockets: our own engine,
or python-qpid-proton."""
