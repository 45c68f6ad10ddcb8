"""Issuers: by what name they are found, and whose word is exchanged for a token."""
