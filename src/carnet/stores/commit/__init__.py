"""Jobs that wait to be written, and writing them together."""
