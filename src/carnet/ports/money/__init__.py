"""Ports of money: what calls may spend, and what an account has paid for."""
