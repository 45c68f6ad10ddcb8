"""A run is named by its id, by the beginning of it, or as the last one (R55)."""

from collections.abc import Iterator
from threading import Thread

import pytest

from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.cli.conftest import Cli
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG, executions


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """An organisation whose gateway runs."""
    organisation = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    organisation.configure(CONFIG, agents=AGENTS)
    organisation.start()
    yield organisation
    assert organisation.stop() == 0


def test_the_last_run_is_shown_explained_and_followed(acme: Organisation) -> None:
    for run in ("conv_before", "conv_newest"):
        assert acme.chat("hi", "words", headers=[("x-tangle-runid", run)]).status == 200
    assert acme.json("run", "show", "last")["run"] == "conv_newest"
    assert acme.json("explain", "last")["run"] == "conv_newest"
    assert acme.carnet("tail", "last").stdout.splitlines()[-1].split()[:2] == ["end", "conv_newest"]
    assert acme.carnet("tail", "conv_b").stdout.splitlines()[-1].split()[:2] == [
        "end",
        "conv_before",
    ]


def test_a_caller_that_calls_its_run_last_does_not_stand_before_the_newest(
    acme: Organisation,
) -> None:
    for run in ("last", "conv_after"):
        assert acme.chat("hi", headers=[("x-tangle-runid", run)]).status == 200
    assert acme.json("run", "show", "last")["run"] == "conv_after"


@pytest.mark.parametrize(("run", "name"), [("by_beginning", "by_beg"), ("as_newest", "last")])
def test_a_run_is_cancelled_by_the_beginning_of_its_id_and_as_the_last(
    acme: Organisation, run: str, name: str
) -> None:
    fields = [("x-tangle-runid", run), ("x-tangle-turnid", run)]
    asking = Thread(target=acme.chat, args=("600", "slow"), kwargs={"headers": fields})
    asking.start()
    until(lambda: run in executions(acme.folder, "slow"))
    assert f"Told 1 turn of {run} to stop." in acme.carnet("run", "cancel", name).stdout
    asking.join(PATIENCE_SECONDS)


def test_a_run_that_nobody_made_is_not_cancelled(acme: Organisation) -> None:
    refused = acme.try_carnet("run", "cancel", "no_such_run")
    assert (refused.returncode, "run_not_found" in refused.stderr) == (1, True)


@pytest.mark.usefixtures("home")
def test_without_runs_there_is_no_last_one(cli: Cli) -> None:
    ran = cli("run", "show", "last")
    assert ran.code == 2
    assert "There is no run yet" in ran.err
