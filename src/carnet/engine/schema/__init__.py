"""Tools for models that cannot call any, by a schema for their answers."""
