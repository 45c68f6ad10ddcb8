"""Dialogues: several agents that a driver lets speak in turn."""
