"""What is told of tasks: their artifacts, their updates, their pages."""
