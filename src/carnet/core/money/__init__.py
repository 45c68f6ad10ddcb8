"""Amounts of money and counted limits."""
