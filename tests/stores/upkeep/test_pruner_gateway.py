"""A gateway that prunes by itself: the log and the metrics tell."""

from pathlib import Path

from carnet.testing.wait import until
from tests.stores.support.organisations import House

OLD_US = 3 * 24 * 3600 * 1_000_000


def test_a_gateway_on_sqlite_forgets_what_is_old_and_says_so(tmp_path: Path) -> None:
    house = House(tmp_path / "acme")
    token = house.new_token("watcher", "--scope", "metrics")
    house.start()
    for name in ("conv_old", "conv_new"):
        house.call(name)
    house.stop()
    of = "(SELECT n FROM run WHERE id = 'conv_old')"
    house.rows(f"UPDATE turn SET ended = ended - {OLD_US} WHERE run = {of}")  # noqa: S608
    house.rows("DELETE FROM meta WHERE name = 'pruned'")  # as if an hour had passed
    house.start(env={"CARNET__RETENTION__TURNS": "2"})
    until(lambda: house.rows("SELECT id FROM run") == [("conv_new",)])
    until(lambda: any("pruned: forgot 1 turns" in line for line in house.log_lines()))
    assert b'carnet_pruned_total{kind="turns"} 1.0' in house.get("/metrics", token=token).body
    assert house.postings() == 2  # the ledger is kept
    house.stop()
