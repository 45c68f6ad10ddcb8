"""Hooks and schedules of a gateway, put together."""
