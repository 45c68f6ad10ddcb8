"""What agents keep for people, in tables."""
