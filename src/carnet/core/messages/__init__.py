"""What is said: messages in parts, events, where an agent writes them, and calls that leave."""
