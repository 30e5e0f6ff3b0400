"""Measures pyjmsack beside python-qpid-proton and Qpid JMS on one broker: ``python -m benchmarks --help``."""
