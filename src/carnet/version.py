"""The version of this package, below every room that tells it."""

__version__ = "0.1.0"
