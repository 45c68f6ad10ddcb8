"""The command line against a running gateway: a real process, the way an operator has one."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.support.organisation import Organisation

AGENTS = '''
"""Agents of the test."""

import asyncio


async def echo(visit):
    """Say it again."""
    return visit.text


async def words(visit):
    """Say it word by word."""
    for word in visit.text.split():
        yield word + " "


async def slow(visit):
    """Take very long."""
    await asyncio.sleep(60)
    return "late"


async def broken(visit):
    """Fail."""
    raise ValueError("nobody outside may read this")


async def half(visit):
    """Begin, then fail."""
    yield "the first half"
    raise ValueError("nobody outside may read this")


async def relay(visit):
    """Ask echo."""
    async for event in visit.peer("echo")(visit.text):
        yield event
'''

CONFIG = """
[agents.words]
target = "agents:words"

[agents.slow]
target = "agents:slow"

[agents.broken]
target = "agents:broken"

[agents.half]
target = "agents:half"

[agents.relay]
target = "agents:relay"

[agents.paid]
target = "agents:echo"
price = "0.0002"
"""


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """An organisation whose gateway runs."""
    organisation = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    organisation.configure(CONFIG, agents=AGENTS)
    organisation.start()
    yield organisation
    assert organisation.stop() == 0


def test_a_call_prints_the_answer_and_a_line_about_it(acme: Organisation) -> None:
    ran = acme.carnet("call", "echo", "hello")
    assert ran.stdout == "hello\n"
    assert ran.stderr.startswith("run ")
    assert " turn " in ran.stderr
    assert "cost 0 credits" in ran.stderr


def test_a_streamed_call_prints_the_same_text(acme: Organisation) -> None:
    ran = acme.carnet("call", "words", "one two three", "--stream")
    assert ran.stdout == "one two three \n"
    assert "run " in ran.stderr


def test_a_streamed_call_in_lines_of_json_prints_every_chunk(acme: Organisation) -> None:
    ran = acme.carnet("call", "words", "one two", "--stream", "--format", "jsonl")
    chunks = [json.loads(line) for line in ran.stdout.splitlines()]
    text = "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
    assert text == "one two "
    assert chunks[-1]["usage"]["currency"] == "credits"


def test_json_prints_the_whole_answer(acme: Organisation) -> None:
    page = acme.json("call", "paid", "hello")
    assert page["choices"][0]["message"]["content"] == "hello"
    assert page["usage"]["cost"] == "0.0002"


def test_a_token_can_be_given_as_text_file_or_variable(acme: Organisation) -> None:
    for words, env in [
        (["--as", acme.token], None),
        (["--as", "@var/starter.token"], None),
        ([], {"CARNET_TOKEN": acme.token, "CARNET_URL": acme.url}),
    ]:
        assert acme.carnet("call", "echo", "hi", *words, env=env).stdout == "hi\n"


def test_another_port_is_named_by_the_environment(acme: Organisation) -> None:
    env = {"CARNET__GATEWAY__PORT": "9", "CARNET_URL": acme.url}
    assert acme.carnet("call", "echo", "hi", env=env).stdout == "hi\n"


@pytest.mark.parametrize("run", ["conv_same", "conv_operator"])
def test_the_same_turn_gives_the_same_answer(acme: Organisation, run: str) -> None:
    words = ("call", "echo", "hi", "--run", run, "--turn", f"{run}.t0.echo")
    token = ("--as", acme.token) if run == "conv_same" else ()
    assert acme.json(*words, *token) == acme.json(*words, *token)


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["echo", "x", "--as", "wrong"], 1, "token_invalid"),
        (["ehco", "x"], 1, "agent_not_found"),
        (["@x@nowhere.example", "x"], 1, "peer_unknown"),
        (["broken", "x"], 1, "agent_failed"),
        (["slow", "x", "--timeout", "0.3"], 3, "provider_timeout"),
        (["http://127.0.0.1:9", "x", "--dialect", "openai"], 3, "unreachable"),
    ],
)
def test_a_refusal_is_told_with_its_code_and_exit_code(
    acme: Organisation, words: list[str], code: int, error: str
) -> None:
    ran = acme.try_carnet("call", *words, "--format", "json")
    assert (ran.returncode, ran.stdout) == (code, "")
    refusal = json.loads(ran.stderr)
    assert refusal["code"] == error
    assert refusal["hint"]
    assert "nobody outside" not in ran.stderr
    plain = acme.try_carnet("call", *words)
    assert plain.returncode == code
    assert plain.stderr.startswith("Error: ")


def test_a_call_that_fails_names_its_run_and_turn(acme: Organisation) -> None:
    for run, option in (("conv_failing", []), ("conv_breaking", ["--stream"])):
        names = ("--run", run, "--turn", f"{run}.t0")
        ran = acme.try_carnet("call", "half", "x", *names, *option)
        assert ran.stderr.splitlines()[-1].strip() == f"run {run}  turn {run}.t0"
    in_json = acme.try_carnet("call", "broken", "x", "--format", "json")
    assert json.loads(in_json.stderr)["run"]
    assert json.loads(in_json.stderr)["turn"]


def test_a_call_that_took_too_long_names_the_option(acme: Organisation) -> None:
    ran = acme.try_carnet("call", "slow", "x", "--timeout", "0.3")
    assert "within 0.3 s (--timeout)" in ran.stderr


def test_a_dead_url_is_not_answered_with_how_to_start_a_gateway(acme: Organisation) -> None:
    ran = acme.try_carnet("call", "http://127.0.0.1:9", "x", "--dialect", "openai")
    assert "Nothing answers at http://127.0.0.1:9" in ran.stderr
    assert "carnet serve" not in ran.stderr


def test_a_stream_that_breaks_is_told_after_what_was_said(acme: Organisation) -> None:
    ran = acme.try_carnet("call", "half", "x", "--stream")
    assert ran.returncode == 1
    assert ran.stdout == "the first half\n"
    assert "Error: The agent failed" in ran.stderr
    assert "carnet explain agent_failed" in ran.stderr


def test_a_url_is_called_from_here(acme: Organisation) -> None:
    address = f"{acme.url}/agents/echo"
    words = ("call", address, "hi", "--dialect", "openai", "--as", acme.token)
    assert acme.carnet(*words).stdout == "hi\n"


def test_an_agent_of_a_peer_can_be_called_from_here(acme: Organisation, tmp_path: Path) -> None:
    other = Organisation(tmp_path, "b.example")
    token = str(acme.folder / "var" / "starter.token")
    other.carnet("peers", "add", "acme.example", "--url", acme.url, "--token-file", token)
    assert other.carnet("call", "@echo@acme.example", "hi", "--direct").stdout == "hi\n"


def test_the_newest_runs_can_be_followed_until_ctrl_c(acme: Organisation) -> None:
    acme.carnet("call", "echo", "x", "--run", "conv_followed")
    command = [sys.executable, "-m", "carnet.cli.main", "tail", "--format", "jsonl"]
    with subprocess.Popen(  # noqa: S603  our own command
        command, cwd=acme.folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while json.loads(process.stdout.readline())["run"] != "conv_followed":
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def test_a_list_goes_on_where_the_last_one_ended(acme: Organisation) -> None:
    for number in range(3):
        acme.carnet("call", "echo", "x", "--run", f"conv_page{number}")
    first = acme.json("runs", "--limit", "2")
    then = acme.json("runs", "--limit", "2", "--before", str(first["next"]))
    names = [run["run"] for run in first["runs"] + then["runs"]]
    assert names[:3] == ["conv_page2", "conv_page1", "conv_page0"]
    assert len(set(names)) == 4


def test_a_list_of_some_runs_goes_on_with_the_same_also_without_a_gateway(
    acme: Organisation,
) -> None:
    token = acme.new_token("lists-some")
    for number in range(2):
        acme.chat("x", headers=[("x-tangle-runid", f"conv_some{number}")], token=token)
        acme.carnet("call", "echo", "x")
    like = ("runs", "--actor", "token:lists-some")
    words = (*like, "--limit", "1")
    until(lambda: acme.json(*like)["runs"], lambda runs: len(runs) == 2)
    for env in ({}, {"CARNET__GATEWAY__PORT": "9"}):
        page = json.loads(acme.carnet(*words, "--format", "json", env=env).stdout)
        assert [run["run"] for run in page["runs"]] == ["conv_some1"]
        more = f"More: carnet runs --actor token:lists-some --before {page['next']}"
        assert more in acme.carnet(*words, env=env).stdout
        then = acme.carnet(*words, "--before", str(page["next"]), "--format", "json", env=env)
        assert [run["run"] for run in json.loads(then.stdout)["runs"]] == ["conv_some0"]


def test_runs_are_listed_and_shown_as_a_tree(acme: Organisation) -> None:
    acme.carnet("call", "relay", "hi", "--run", "conv_tree")
    line = next(run for run in acme.json("runs")["runs"] if run["run"] == "conv_tree")
    assert (line["agent"], line["turns"], line["state"]) == ("relay", 2, "done")
    page = acme.json("run", "show", "conv_tree")
    (root,) = page["turns"]
    assert [child["agent"] for child in root["children"]] == ["echo"]
    drawn = acme.carnet("run", "show", "conv_tree").stdout
    assert "└─ relay  depth 0 of 4  done" in drawn
    assert "   └─ echo  depth 1 of 4  done" in drawn
    assert "conv_tree" in acme.carnet("runs").stdout


def test_a_failure_is_marked_in_the_tree(acme: Organisation) -> None:
    acme.try_carnet("call", "broken", "x", "--run", "conv_broken")
    assert "agent_failed  ◀ failed here" in acme.carnet("run", "show", "conv_broken").stdout


def test_a_run_of_nobody_is_not_found(acme: Organisation) -> None:
    ran = acme.try_carnet("run", "show", "conv_none", "--format", "json")
    assert ran.returncode == 1
    assert json.loads(ran.stderr)["code"] == "run_not_found"


def test_the_events_of_a_run_can_be_followed_to_their_end(acme: Organisation) -> None:
    acme.carnet("call", "words", "a b", "--run", "conv_tail")
    lines = acme.carnet("tail", "conv_tail", "--format", "jsonl").stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert events[-1]["event"] == "end"
    assert [e["data"]["text"] for e in events if e["event"] == "text"] == ["a ", "b "]
    assert "text" in acme.carnet("tail", "conv_tail").stdout


def test_cancelling_says_how_many_were_told(acme: Organisation) -> None:
    acme.carnet("call", "echo", "x", "--run", "conv_ended")
    page = acme.json("run", "cancel", "conv_ended")
    assert (page["run"], page["cancelled"]) == ("conv_ended", 0)
    assert [(hop["agent"], hop["outcome"]) for hop in page["hops"]] == [("echo", "done")]
    text = acme.carnet("run", "cancel", "conv_ended").stdout
    assert text == "Nothing of conv_ended is running here.\n"


def test_the_ledger_has_a_posting_for_every_served_call(acme: Organisation) -> None:
    acme.carnet("call", "paid", "x", "--run", "conv_paid", "--as", acme.token)
    (entry,) = acme.json("ledger", "--run", "conv_paid")["entries"]
    assert (entry["credit"], entry["amount"]) == ("agent:paid", "0.0002")
    assert "conv_paid" in acme.carnet("ledger", "--run", "conv_paid").stdout


def test_a_token_made_and_ended_while_the_gateway_runs_is_noticed(acme: Organisation) -> None:
    token = acme.new_token("guest")
    assert acme.carnet("call", "echo", "x", "--as", token).stdout == "x\n"
    acme.carnet("tokens", "revoke", "guest")


def test_doctor_finds_the_running_gateway(acme: Organisation) -> None:
    page = acme.json("doctor")
    checks = {check["what"]: check for check in page["checks"]}
    assert page["ok"] is True
    assert checks["port"]["message"] == f"Our gateway answers at {acme.url}."
    assert checks["lock"]["message"] == "The running gateway has the store."


def test_doctor_finds_a_stranger_on_our_port(acme: Organisation, tmp_path: Path) -> None:
    other = Organisation(tmp_path, "other.example")
    ran = other.try_carnet("doctor", env={"CARNET__GATEWAY__PORT": str(acme.port)})
    assert ran.returncode == 2
    assert f"Something answers at {acme.url}, but it does not know the tokens" in ran.stdout


def test_a_run_is_found_by_the_beginning_of_its_id(acme: Organisation) -> None:
    for run in ("conv_begun_1", "conv_begun_22"):
        acme.carnet("call", "echo", "x", "--run", run)
    assert acme.json("run", "show", "conv_begun_1")["run"] == "conv_begun_1"
    assert acme.json("run", "show", "conv_begun_2")["run"] == "conv_begun_22"
    both = acme.try_carnet("run", "show", "conv_begun")
    assert both.returncode == 2
    assert "2 runs begin with 'conv_begun'" in both.stderr


def test_a_run_of_two_payers_is_followed_without_repeating_lines(acme: Organisation) -> None:
    acme.carnet("call", "echo", "x", "--run", "conv_shared")
    acme.carnet("call", "echo", "x", "--run", "conv_shared", "--as", acme.token)
    command = [sys.executable, "-m", "carnet", "tail", "--format", "jsonl"]
    runs: list[str] = []
    with subprocess.Popen(  # noqa: S603  our own command
        command, cwd=acme.folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while runs.count("conv_shared") < 2:
            runs.append(json.loads(process.stdout.readline())["run"])
        for later in ("conv_second_look", "conv_third_look"):
            acme.carnet("call", "echo", "x", "--run", later)
            while runs[-1] != later:
                runs.append(json.loads(process.stdout.readline())["run"])
        process.send_signal(signal.SIGINT)
        process.wait(10)
    assert runs.count("conv_shared") == 2


def test_a_second_gateway_on_the_same_store_is_refused(acme: Organisation) -> None:
    ran = acme.try_carnet("serve", "--port", "0")
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    assert ran.stderr.startswith("Error: ")


def test_pages_are_the_same_with_and_without_a_gateway(acme: Organisation) -> None:
    acme.carnet("call", "relay", "hi", "--run", "conv_both")
    over_http = acme.json("run", "show", "conv_both")
    env = {"CARNET__GATEWAY__PORT": "9"}
    ran = acme.carnet("run", "show", "conv_both", "--format", "json", env=env)
    assert json.loads(ran.stdout) == over_http


def test_why_a_call_was_admitted_is_told(acme: Organisation) -> None:
    run = _run_of(acme)
    output = acme.carnet("explain", run).stdout
    assert "known caller  " in output
    assert "may call:relay" in output
    assert "agent:relay" in output  # of the turn that the agent made
    page = acme.json("explain", run)
    assert [turn["agent"] for turn in page["turns"]] == ["relay", "echo"]
    only = acme.json("explain", run, page["turns"][1]["turn"])
    assert [turn["agent"] for turn in only["turns"]] == ["echo"]
    ran = acme.try_carnet("explain", run, "no-such-turn")
    assert ran.returncode != 0
    assert "is no turn of" in ran.stderr


def test_a_run_whose_id_has_no_digits_is_explained_too(acme: Organisation) -> None:
    for run in ("letters", "letterhead", "internal"):
        acme.carnet("call", "echo", "hi", "--run", run)
    assert acme.json("explain", "letters")["run"] == "letters"
    assert acme.json("explain", "letterh")["run"] == "letterhead"
    assert acme.json("explain", "internal")["code"] == "internal"  # what is a code is one
    assert acme.json("explain", "internal", "turn_")["run"] == "internal"
    several = acme.try_carnet("explain", "letter")
    assert several.returncode == 2
    assert "2 runs begin with 'letter'. Give more of it: letterhead, letters" in several.stderr
    nothing = acme.try_carnet("explain", "token_mising")
    assert nothing.returncode == 2
    assert "Did you mean 'token_missing'?" in nothing.stderr


def test_why_a_call_was_admitted_is_for_the_operator(acme: Organisation) -> None:
    run = _run_of(acme)
    assert acme.get(f"/runs/{run}/grounds", token=acme.token).status == 403


def test_why_a_call_was_admitted_is_read_from_the_store_of_a_gateway_that_is_down(
    tmp_path: Path,
) -> None:
    organisation = Organisation(tmp_path / "acme", "acme.example")
    organisation.start()
    run = _run_of(organisation, "echo")
    organisation.stop()
    page = organisation.json("explain", run)
    assert [ground["guard"] for ground in page["turns"][0]["grounds"]][:2] == [
        *("known caller", "within chain"),
    ]


def _run_of(organisation: Organisation, agent: str = "relay") -> str:
    ran = organisation.carnet("call", agent, "why")
    return str(ran.stderr.split()[1])
