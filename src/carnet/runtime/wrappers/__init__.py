"""Agents around agents: retries, circuit breaker, deadline, limit, a task of its own."""
