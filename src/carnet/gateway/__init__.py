"""Answers: ASGI in, an Agent behind."""
