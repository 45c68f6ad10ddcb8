"""Cards of A2A, for the commands that show and judge cards."""
