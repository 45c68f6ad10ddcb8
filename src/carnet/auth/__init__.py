"""Admits people: a credential in, who acts out. It stands between a gateway and an agent loop.

Neither of them imports it, and it imports neither.
"""
