"""Sections of the file that are read by rules of their own."""
