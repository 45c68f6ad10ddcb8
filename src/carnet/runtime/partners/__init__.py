"""What is asked of partners beside calls."""
