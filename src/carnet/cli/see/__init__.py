"""`carnet runs`, `run`, `tail`, `explain`, `outbox`, `agents inspect` and `lint`."""
