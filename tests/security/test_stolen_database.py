"""A thief has the database, the log or the screen of an operator: none of them holds a token."""

import hashlib
import hmac
import json
from base64 import b64decode
from pathlib import Path

import pytest

from tests.security.support.scene import (
    RUN,
    UPSTREAM_TOKEN,
    Scene,
    canary,
    files,
    forwarding,
    fresh,
    mode,
    places,
    query,
    settle,
    steal_database,
)
from tests.support.federation import organisation
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def used(scene: Scene) -> Scene:
    """The scene after every token was used, alone and forwarded, here and abroad."""
    for token in scene.secrets().values():
        scene.acme.chat("hi", token=token)
    for credential in (scene.alice, scene.peer, canary()):
        scene.acme.chat("hi", "paid", token=scene.bridge, headers=[forwarding(credential)])
    scene.acme.chat("hi", "@echo@globex.example", token=scene.alice)
    scene.acme.chat("hi", "answer", token=scene.bridge, headers=[forwarding(canary())])
    settle(scene.acme)
    return scene


def database(gateway: Organisation) -> dict[str, bytes]:
    """The files of the database, with what is not yet in the main one."""
    return {name: data for name, data in files(gateway).items() if "carnet.db" in name}


def test_the_database_holds_no_token_in_any_spelling(used: Scene) -> None:
    """A71: neither ours, nor the one that a peer gave us, nor the keys of the secrets file."""
    own = json.loads((used.acme.folder / "var" / "secrets.key").read_text())
    keys = [own[name] for name in ("pepper", "seal", "names")]
    globex_token = (used.acme.folder / "var" / "globex.example.token").read_text()
    stolen = database(used.acme)
    assert any(name.endswith("-wal") for name in stolen)
    assert places(["alice"], stolen)  # what is looked for would be found
    assert places([*used.secrets().values(), globex_token, *keys], stolen) == []
    raw = [b64decode(key) for key in keys]
    assert [name for name, data in stolen.items() if any(key in data for key in raw)] == []


def test_no_file_holds_a_token_but_those_that_are_there_for_it(used: Scene) -> None:
    """A71: log, errors, configuration and database, at both organisations."""
    globex_token = (used.acme.folder / "var" / "globex.example.token").read_text()
    tokens = [*used.secrets().values(), used.globex.token, globex_token]
    assert places(tokens, files(used.acme) | files(used.globex)) == []


def test_what_is_stored_of_a_token_cannot_be_found_by_guessing(used: Scene) -> None:
    """A71: it is keyed; no plain hash of a token, and no key that one would try, gives it."""
    stored = {bytes(value) for (value,) in query(used.acme, "SELECT hash FROM token")}
    guesses: set[bytes] = set()
    for token in used.secrets().values():
        for text in (token, token.removeprefix("ck_"), f"Bearer {token}"):
            for name in ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s"):
                guesses.add(hashlib.new(name, text.encode()).digest())
            for key in (b"\0" * 32, b"carnet", b"acme.example", b"pepper", text.encode()):
                guesses.add(hmac.digest(key, text.encode(), "sha256"))
    assert not guesses & stored
    assert not {guess[:32] for guess in guesses} & stored
    pepper = b64decode(json.loads((used.acme.folder / "var/secrets.key").read_text())["pepper"])
    assert hmac.digest(pepper, used.alice.encode(), "sha256") in stored


def test_a_stolen_database_opens_no_door_under_other_keys(used: Scene, tmp_path: Path) -> None:
    """A71: no token of it is known, and a peer whose token cannot be opened is not called.

    Nor can anything be signed with its key: whoever has it must make another.
    """
    thief = organisation(tmp_path / "thief", "thief.example")
    steal_database(used.acme, thief)
    own = thief.new_token("own")
    refused = thief.try_carnet("serve", "--port", "0")
    assert refused.returncode == 2
    assert "carnet keys rotate" in refused.stderr
    thief.carnet("keys", "rotate")
    thief.start()
    try:
        assert thief.chat(token=own).status == 200
        for token in used.secrets().values():
            reply = thief.chat(token=token)
            assert (reply.status, reply.code) == (401, "token_invalid")
        before = (used.globex.folder / "ran.txt").read_text()
        reply = thief.chat("hi", "@echo@globex.example", token=own)
        assert (reply.status, reply.code) == (404, "peer_unknown")
        assert (used.globex.folder / "ran.txt").read_text() == before
    finally:
        assert thief.stop() == 0


def test_what_holds_a_secret_is_its_owners_alone(used: Scene) -> None:
    """A71: keys, tokens, database and the folder they are in."""
    var = used.acme.folder / "var"
    assert mode(var) == 0o700
    modes = {path.name: mode(path) for path in var.iterdir()}
    assert {"secrets.key", "carnet.db", "carnet.db-wal", "starter.token"} <= modes.keys()
    assert {name: bits for name, bits in modes.items() if bits & 0o077} == {}


def test_a_gateway_whose_keys_others_can_read_does_not_start(tmp_path: Path) -> None:
    """A71."""
    careless = organisation(tmp_path / "careless", "careless.example")
    keys = careless.folder / "var" / "secrets.key"
    keys.chmod(0o640)
    done = careless.try_carnet("serve", "--port", "0")
    assert done.returncode == 2
    assert f"chmod 600 {keys}" in done.stderr
    assert places([json.loads(keys.read_text())["pepper"]], {"it": done.stderr.encode()}) == []


COMMANDS = [
    ["runs", "--limit", "100"],
    ["ledger"],
    ["tokens", "list", "--all"],
    ["peers", "list"],
    ["agents", "list"],
    ["config", "show"],
    ["config", "check"],
    ["doctor"],
    ["call", "--dry-run", "@echo@globex.example", "hi"],
    ["call", "--dry-run", "echo", "hi"],
    ["call", "--dry-run", "--as", "{alice}", "echo", "hi"],
    ["call", "--dry-run", "--as", "{alice}", "@echo@globex.example", "hi"],
    ["call", "--as", "{lowly}", "paid", "hi"],
    ["call", "--as", "{alice}", "--direct", "@echo@globex.example", "hi"],
    ["call", "--as", "{alice}x", "echo", "hi"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_shows_a_credential(used: Scene, words: list[str]) -> None:
    """A71, A33: in either format, on either stream, whether it succeeds or not."""
    secrets = used.secrets()
    arguments = [word.format(**secrets) for word in words]
    globex_token = (used.acme.folder / "var" / "globex.example.token").read_text()
    tokens = [*secrets.values(), globex_token, UPSTREAM_TOKEN]
    for form in ("text", "json"):
        done = used.acme.try_carnet("--format", form, *arguments)
        shown = (done.stdout + done.stderr).encode()
        assert shown.strip()
        assert done.returncode in {0, 1}, shown  # it was refused at the most; it did not break
        assert places(tokens, {"shown": shown}) == []


def test_a_run_paid_by_forwarding_is_shown_without_the_credential(used: Scene) -> None:
    """A33: `run show` names an account, and the account is no credential."""
    run, secret = fresh("shown"), canary()
    headers = [forwarding(secret), (RUN, run)]
    assert used.acme.chat("hi", "paid", token=used.bridge, headers=headers).status == 200
    page = used.acme.json("run", "show", run)
    assert page["payer"].endswith("@token:bridge")
    text = used.acme.carnet("run", "show", run).stdout
    assert places([secret], {"page": json.dumps(page).encode(), "text": text.encode()}) == []
