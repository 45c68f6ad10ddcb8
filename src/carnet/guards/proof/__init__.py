"""Whether a signed request holds: its time, address, signature, nonce and travel document."""
