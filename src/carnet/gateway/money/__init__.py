"""Money over HTTP: what may be spent, whether the ledger is whole, and whether partners agree."""
