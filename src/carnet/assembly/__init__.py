"""The bill of materials: from configuration to running parts."""
