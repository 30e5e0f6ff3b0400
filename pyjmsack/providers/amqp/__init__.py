"""AMQP 1.0: the provider, and the code that encodes and decodes messages. The provider uses one of two engines, which
open no sockets: the engine of this project, or the library python-qpid-proton."""
