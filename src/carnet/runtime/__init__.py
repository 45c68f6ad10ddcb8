"""Runs calls: agents, their wrappers, and the client for requests to other machines."""
