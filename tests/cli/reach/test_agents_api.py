"""`carnet call URL --dialect agents_api`, against a host that shares no code with Carnet."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.agents_api.server import TOKEN, Seen, hosting
from tests.support.organisation import Organisation


class Caller:
    """The command line, beside no gateway that runs."""

    def __init__(self, home: Organisation, host: Seen) -> None:
        self._home = home
        self.host = host

    def call(self, *words: str, agent: str = "parrot", token: str = TOKEN) -> CompletedProcess[str]:
        url = f"{self.host.url}/agents-api/v1/agent/{agent}"
        return self.at(url, *words, token=token)

    def at(self, url: str, *words: str, token: str = TOKEN) -> CompletedProcess[str]:
        options = ("--dialect", "agents_api", "--as", token)
        return self._home.try_carnet("call", url, *words, *options)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with hosting() as host:
        yield Caller(Organisation(tmp_path_factory.mktemp("caller"), "acme.example"), host)


def test_the_answer_is_printed_and_the_run_noted(caller: Caller) -> None:
    done = caller.call("good day")
    assert (done.returncode, done.stdout) == (0, "parrot: good day\n")
    assert "run run_" in done.stderr


def test_a_stream_is_printed_as_it_comes(caller: Caller) -> None:
    done = caller.call("good day", "--stream")
    assert (done.returncode, done.stdout) == (0, "parrot: good day\n")


def test_for_programs_it_is_json(caller: Caller) -> None:
    done = caller.call("good day", "--format", "json")
    page = json.loads(done.stdout)
    assert (page["result"]["text"], page["run"][:4]) == ("parrot: good day", "run_")
    done = caller.call("good day", "--stream", "--format", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(line.get("chunk", "") for line in lines) == "parrot: good day"
    assert lines[-1]["result"]["text"] == "parrot: good day"


def test_the_host_and_a_name_are_enough_and_without_a_name_it_says_so(caller: Caller) -> None:
    done = caller.at(f"{caller.host.url}/", "hi", "--model", "parrot")
    assert done.stdout == "parrot: hi\n"
    done = caller.at(caller.host.url, "hi")
    assert done.returncode == 2
    assert "--model NAME" in done.stderr
    assert "Give a text" in caller.call().stderr


def test_a_dry_run_sends_nothing_and_shows_no_token(caller: Caller) -> None:
    caller.host.requests.clear()
    done = caller.call("hi", "--dry-run")
    assert '"message/send"' in done.stdout
    assert TOKEN not in done.stdout
    page = json.loads(caller.call("hi", "--dry-run", "--format", "json").stdout)
    assert page["body"]["params"]["message"]["parts"] == [{"type": "text", "text": "hi"}]
    assert caller.host.requests == []


def test_a_run_has_the_name_that_is_given_and_is_run_once(caller: Caller) -> None:
    named = ("--turn", "run-of-mine", "--run", "session-of-mine")
    assert caller.call("hi", *named).returncode == 0
    params = caller.host.requests[-1][2]["params"]
    assert (params["id"], params["sessionId"]) == ("run-of-mine", "session-of-mine")
    assert caller.call("hi", *named).returncode == 1


def test_what_it_waits_for_is_told_with_the_next_step(caller: Caller) -> None:
    done = caller.call("hi", agent="acts")
    assert done.returncode == 1
    assert "Publish the post" in done.stderr
    assert "keeps no runs" in done.stderr
    page = json.loads(caller.call("hi", "--format", "json", agent="acts").stderr)
    assert page["action"].startswith("act-run_")


@pytest.mark.parametrize(
    ("agent", "token", "code"), [("parrot", "wrong", 1), ("fails", TOKEN, 1), ("deep", TOKEN, 1)]
)
def test_a_refusal_has_its_exit_code_and_none_of_their_words(
    caller: Caller, agent: str, token: str, code: int
) -> None:
    done = caller.call("hi", agent=agent, token=token)
    assert done.returncode == code, done.stderr
    assert "secret of the site" not in done.stderr


def test_one_that_is_not_there_is_unreachable(caller: Caller, tmp_path: Path) -> None:
    del tmp_path
    done = caller.at("http://127.0.0.1:9/agents-api/v1/agent/x", "hi")
    assert done.returncode == 3
