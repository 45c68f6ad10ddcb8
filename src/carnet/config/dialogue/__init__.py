"""Conversations, as a configuration says them."""
