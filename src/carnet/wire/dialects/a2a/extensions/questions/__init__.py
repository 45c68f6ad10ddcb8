"""What a task waits for in the words of others, and the answer to it."""
