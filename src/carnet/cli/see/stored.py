"""Runs in the store of the configuration, by the names that people give them (R55)."""

import os
from typing import TYPE_CHECKING

from carnet.cli.invocation import find_begun
from carnet.cli.see.runs import LAST, MOST_RUNS

if TYPE_CHECKING:
    from carnet.stores.open import Store


async def find_stored(store: "Store", run_id: str) -> str:
    """The id of a run: itself, the only one of the newest that begins so, or the newest."""
    from carnet.errors import RunNotFound, UsageInvalid

    if os.environ.get("CARNET_URL"):  # another gateway's runs are not in our store
        raise UsageInvalid(
            reason="This reads the store of a configuration, and CARNET_URL names a gateway.",
            fix="Unset CARNET_URL, and type it where the carnet.toml of the gateway is.",
        )
    if run_id != LAST and await store.records.run(run_id, reader=None):
        return run_id
    newest, _ = await store.records.runs(reader=None, limit=MOST_RUNS, before=None)
    if run_id == LAST and newest:
        return newest[0].run
    found = find_begun(run_id, (each.run for each in newest), "run")
    if found is None:
        raise RunNotFound
    return found
