"""Ports of trust: tokens and peers, keys, receipts, the schemas of skills."""
