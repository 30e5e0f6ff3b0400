"""The interface between the JMS core and the protocols, which every provider implements."""
