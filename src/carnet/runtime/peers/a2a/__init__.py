"""Agents that speak A2A: their cards, requests to them, and the tasks that they run for us."""
