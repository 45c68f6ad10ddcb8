"""The memory of people: what agents keep for them, as files."""
