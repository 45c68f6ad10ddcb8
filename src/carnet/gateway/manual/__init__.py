"""The documentation, served by the gateway itself."""
