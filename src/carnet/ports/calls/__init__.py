"""Ports of the work itself: admission, agents, turns, tasks and their steps."""
