"""What a provider must be: the only door between the JMS core and the protocols."""
