"""The answering gateway dies between its record and its receipt: the repeat brings both."""

from pathlib import Path

from tests.support.federation import organisation
from tests.support.served import executions
from tests.travel.scene import acquaint


def test_a_receipt_that_a_crash_has_lost_is_made_when_the_call_is_repeated(tmp_path: Path) -> None:
    a, b = (organisation(tmp_path / name, f"{name}.example") for name in "ab")
    acquaint(a, b)
    a.start()
    b.start(env={"CRASH_AT": "t3.after_commit"})
    try:
        names = [("x-tangle-runid", "run-1"), ("x-tangle-turnid", "t1")]
        assert a.chat("hi", "@paid@b.example", headers=names).status >= 500
        assert b.died()
        b.start()
        again = a.chat("hi", "@paid@b.example", headers=names)
        assert again.text == "hi", again.body
        assert len(executions(b.folder, "paid")) == 1
        (ours,) = a.json("ledger", "--run", "run-1")["entries"]
        (theirs,) = b.json("ledger", "--run", "run-1")["entries"]
        assert ours["amount"] == theirs["amount"] == "0.0002"
    finally:
        a.stop()
        b.stop()
