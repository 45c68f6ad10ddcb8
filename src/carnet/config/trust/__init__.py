"""What an operator writes down about identities: whom to trust, and who may call."""
