"""Conversations that a gateway drives, within turns of its own."""
