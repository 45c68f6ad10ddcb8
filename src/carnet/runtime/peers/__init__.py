"""What is exchanged with other organisations: cards, keys, signatures, SAMVAD requests."""
