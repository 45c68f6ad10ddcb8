"""The journals of drivers that have no gateway."""
