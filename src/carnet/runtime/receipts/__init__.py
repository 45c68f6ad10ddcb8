"""Receipts: those that we give, those that we ask for, and the record of a call that left."""
