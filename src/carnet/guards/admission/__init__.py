"""The gate: the order of the guards, the last transaction, and what children of a call pass."""
