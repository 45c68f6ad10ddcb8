"""`carnet conform`: what it tells of a loop, and how it ends."""

import json

import pytest

from carnet.cli.main import run
from tests.testing.conform.test_kit import TOKEN, serving


def test_a_loop_that_keeps_the_contract_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as url:
        assert run(["conform", "--engine", url, "--token", TOKEN]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ok      credential-missing ") for line in lines)
    assert any(line.startswith("unseen  tool-calls ") for line in lines)
    assert lines[-1].endswith(" ok, 0 broken, 6 not seen.")


def test_one_that_does_not_is_told_by_what_was_expected_and_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET_TOKEN", TOKEN)
    with serving(is_known=lambda _: True) as url:
        assert run(["conform", "--engine", url]) == 4
        lines = capsys.readouterr().out.splitlines()
        at = next(n for n, line in enumerate(lines) if line.startswith("broken  credential-miss"))
        assert lines[at + 1].strip() == "expected: 401"
        assert lines[at + 2].strip().startswith("seen:     no credential: 200 ")
        assert run(["conform", "--engine", url, "--format", "json"]) == 4
    page = json.loads(capsys.readouterr().out)
    assert (page["ok"], page["url"]) == (False, url)
    broken = {check["check"] for check in page["checks"] if check["outcome"] == "broken"}
    assert broken == {"credential-missing", "credential-wrong", "identity-forged"}


def test_where_nobody_answers_that_is_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as url:
        pass
    assert run(["conform", "--engine", url, "--token", "x"]) == 3
    assert run(["conform", "--engine", "unix:nowhere.sock", "--token", "x"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"No loop answers at {url}." in shown.err
    assert "No loop answers at unix:nowhere.sock." in shown.err
    assert "carnet engine" in shown.err


def test_a_credential_that_is_refused_is_told_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as url:
        assert run(["conform", "--engine", url, "--token", "wrong"]) == 4
        assert "The loop refuses the credential" in capsys.readouterr().err
        assert run(["conform", "--engine", url, "--token", TOKEN]) == 0
        assert "refuses the credential" not in capsys.readouterr().err


def test_what_is_judged_and_with_which_credential_must_be_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARNET_TOKEN", raising=False)
    here = "http://127.0.0.1:1"
    for words in ([], ["--engine", here], ["--engine", here, "--front", here]):
        assert run(["conform", *words]) == 2
    assert "--token" in capsys.readouterr().err


def test_a_front_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "--front", "http://127.0.0.1:0", "--timeout", "0.1"]) == 4
    shown = capsys.readouterr()
    assert "Listening at http://127.0.0.1:" in shown.err
    assert "nobody asked within 0.1 s" in shown.out
