"""Signatures, digests and tokens: their formats and the curve beneath them."""
