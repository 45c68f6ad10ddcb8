"""Puts an agent loop together, and serves it."""
