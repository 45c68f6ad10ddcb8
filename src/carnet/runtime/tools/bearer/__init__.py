"""What a loop in a process of its own reaches through its gateway, with the bearer of a turn."""
