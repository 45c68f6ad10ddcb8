"""The configuration over HTTP: a value changed, shown as a difference first."""
