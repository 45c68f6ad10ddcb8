"""What a user's function is given, and the calls it makes."""
