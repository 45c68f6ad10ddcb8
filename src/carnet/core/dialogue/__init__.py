"""A dialogue: several agents that a driver lets speak in turn. Publicly it is a conversation."""
