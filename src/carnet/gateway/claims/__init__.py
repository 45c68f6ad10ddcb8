"""What requests bring beside what their dialect reads."""
