"""The conversations of people, as the store keeps them."""
