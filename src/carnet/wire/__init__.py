"""Bytes and headers to core values and back: pure readers and writers, one file a format."""
