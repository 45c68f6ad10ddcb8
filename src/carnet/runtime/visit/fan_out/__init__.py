"""Several agents called at once out of one turn."""
