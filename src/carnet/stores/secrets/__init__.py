"""The secrets of a store: the file they lie in, and sealing with them."""
