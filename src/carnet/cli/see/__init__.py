"""`carnet runs`, `run`, `tail`, `explain`, `ledger`, `outbox`, `agents inspect` and `lint`."""
