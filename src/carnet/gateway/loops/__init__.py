"""What a gateway takes from the agent loops that it asks elsewhere."""
