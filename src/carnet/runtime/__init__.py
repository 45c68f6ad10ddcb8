"""Calls: Agents made of Agents, and the one way out."""
