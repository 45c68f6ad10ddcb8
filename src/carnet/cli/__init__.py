"""The carnet command, one file a command group."""
