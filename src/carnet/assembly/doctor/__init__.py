"""What is to be said of a gateway, for whoever looks after it."""
