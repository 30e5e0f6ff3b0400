"""STOMP 1.2 and 1.1 to ActiveMQ Artemis and ActiveMQ Classic."""
