"""Hooks and schedules over HTTP: what is sent to them, and what their owners make of them."""
