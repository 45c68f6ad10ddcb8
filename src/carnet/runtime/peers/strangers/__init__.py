"""Agents of organisations that are no peers: found by their address, known by what they show."""
