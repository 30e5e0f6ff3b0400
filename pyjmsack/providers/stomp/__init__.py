"""The client side of STOMP 1.2 and 1.1, for ActiveMQ Artemis and ActiveMQ Classic."""
