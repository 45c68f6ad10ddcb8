"""What an agent loop depends on: a model that it asks, and tools that it uses."""
