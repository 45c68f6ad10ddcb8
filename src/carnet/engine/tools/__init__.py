"""What tools are to models that look for them, and to people who watch."""
