"""What is kept and counted of the streams of a loop elsewhere."""
