"""What is counted and told of turns that have ended: metrics by agent and peer, and spans."""
