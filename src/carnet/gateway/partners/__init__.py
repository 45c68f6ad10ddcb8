"""What partners ask of one another beside calls."""
