"""Budgets as the transactions of turns hold, spend and raise them."""
