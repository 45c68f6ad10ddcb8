"""Ports to the world outside: clock, HTTP client, outbox, records, gateways beside us."""
