"""Rows of A2A: what is said of who answers and of who calls, each with what proves it."""

from tests.requirements.designs.a2a import client, server
from tests.requirements.rows import Row


def at_server(id: str, sentence: str, source: str) -> Row:
    """A sentence about what is answered; `server` says what proves it."""
    if id in server.DIVERGENCES:
        divergence, tests = server.DIVERGENCES[id]
        return Row(f"a2a:{id}", sentence, f"A2A 1.0, {source}", tests, divergence)
    return Row(f"a2a:{id}", sentence, f"A2A 1.0, {source}", server.PROVED[id])


def at_client(id: str, sentence: str, source: str) -> Row:
    """A sentence about who calls; `client` says what proves it."""
    if id in client.DIVERGENCES:
        divergence, tests = client.DIVERGENCES[id]
        return Row(f"a2a:{id}", sentence, f"A2A 1.0, {source}", tests, divergence)
    return Row(f"a2a:{id}", sentence, f"A2A 1.0, {source}", client.PROVED[id])
