"""Commands about what agents keep for a person."""
