"""What others read before they call an agent here: its A2A card, and the keys that sign it."""
