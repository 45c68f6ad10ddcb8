"""Calling an agent without a gateway of one's own."""
