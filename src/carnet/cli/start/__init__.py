"""`carnet init`, `serve` and `doctor`."""
