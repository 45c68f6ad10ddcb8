"""Requests to other machines: judges addresses, makes connections, sends."""
