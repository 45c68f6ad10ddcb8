"""The chain of the ledger: written, sealed and verified."""
