"""The conversations of people with their agents, over HTTP."""
