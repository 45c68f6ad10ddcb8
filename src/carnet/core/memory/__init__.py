"""What an agent keeps for a person: how its files are named, found and compared."""
