"""Thinks: the agent loop, which asks a model, uses tools for it, and asks again.

It knows no HTTP, no gateway and no provider: a request of the contract goes in, events come out.
"""
