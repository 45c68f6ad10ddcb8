"""Whose word is believed, put together from the settings."""
