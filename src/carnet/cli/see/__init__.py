"""`carnet runs`, `run`, `tail`, `explain`, `ledger`, `outbox` and `agents inspect`."""
