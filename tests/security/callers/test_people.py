"""One person against another: whoever is not asked to manage people learns and ends nothing."""

import json
from collections.abc import Iterator

import pytest

from tests.security.support.scene import Scene, notice, query
from tests.support.http import Reply, request

NAMES = ("pia", "nobody", "owner", "alice", "token", "%70ia", "pia'--", "..%2fpia", "PIA")
PEOPLE = "SELECT name, state FROM person ORDER BY n"


@pytest.fixture(scope="module")
def people(scene: Scene) -> Iterator[dict[str, str]]:
    """The tokens of a viewer, an operator and an admin, and one that asks for all of hers."""
    acme = scene.acme
    for name, role in (("vera", "viewer"), ("otto", "operator"), ("ada", "admin")):
        acme.carnet("people", "add", name, "--role", role)
    acme.carnet("people", "add", "pia", "--address", "mailto:pia@acme.example")
    tokens = {
        "vera": acme.new_token("veras", "--person", "vera"),
        "otto": acme.new_token("ottos", "--person", "otto"),
        "ada": acme.new_token("adas", "--person", "ada"),  # plain: she may, it may not
        "pia": acme.new_token("pias", "--person", "pia"),
        "service": acme.new_token("machine", "--scope", "*"),
    }
    notice(acme)
    yield tokens
    for name in ("vera", "otto", "ada", "pia"):
        acme.carnet("people", "end", name)
    acme.carnet("tokens", "revoke", "machine")
    notice(acme)


def ask(scene: Scene, method: str, path: str, token: str, page: object = None) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    body = b"" if page is None else json.dumps(page).encode()
    return request(method, scene.acme.url + path, fields, body)


@pytest.mark.parametrize("who", ["vera", "otto", "ada", "pia"])
def test_a_person_reads_and_ends_nobody_without_the_permission(
    scene: Scene, people: dict[str, str], who: str
) -> None:
    """A94: not even herself, and a plain token of an admin does not either."""
    before = query(scene.acme, PEOPLE)
    token = people[who]
    replies = [ask(scene, "GET", "/people", token)]
    replies.append(ask(scene, "POST", "/people", token, {"name": "mole", "roles": ["admin"]}))
    for name in NAMES:
        replies += [
            ask(scene, "GET", f"/people/{name}", token),
            ask(scene, "POST", f"/people/{name}/end", token),
        ]
    assert {(reply.status, reply.json["error"]["code"]) for reply in replies} == {
        (403, "permission_missing")
    }
    assert query(scene.acme, PEOPLE) == before
    # Who is there and who is not cannot be told apart by the answer.
    known, unknown = (
        [reply.json["error"]["message"] for reply in replies[2 + 2 * at : 4 + 2 * at]]
        for at in (0, 1)
    )
    assert known == unknown


def test_without_a_token_nobody_is_told_whether_somebody_is_known(scene: Scene) -> None:
    for name in NAMES:
        for method, path in (("GET", f"/people/{name}"), ("POST", f"/people/{name}/end")):
            assert request(method, scene.acme.url + path).status == 401


def test_a_name_that_is_no_name_finds_nobody(scene: Scene, people: dict[str, str]) -> None:
    before = query(scene.acme, PEOPLE)
    for name in NAMES[5:]:
        if name != "%70ia":  # which spells pia
            assert ask(scene, "POST", f"/people/{name}/end", people["service"]).status == 404
    assert query(scene.acme, PEOPLE) == before


def test_no_route_makes_a_service_token_somebodys(scene: Scene, people: dict[str, str]) -> None:
    """A94: a token links itself to nobody; only the command does."""
    token = people["service"]
    for path in ("/people/pia/link", "/people/pia", "/people/pia/tokens", "/tokens/machine"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            reply = ask(scene, method, path, token, {"token": "machine", "person": "pia"})
            assert reply.status in {404, 405}
    reply = ask(scene, "POST", "/people", token, {"name": "mole", "tokens": ["machine"]})
    assert (reply.status, reply.json["error"]["field"]) == (400, "tokens")
    (row,) = query(scene.acme, "SELECT person FROM token WHERE name = 'machine'")
    assert row == (None,)


@pytest.mark.parametrize(
    "name",
    [
        *("globex.example", "peer:globex.example", "agent:echo@acme.example", "service:machine"),
        *("echo", "ech0", "ott0", "Pia", "operator", "me", "token", "xn--pia"),
    ],
)
def test_nobody_is_called_like_a_peer_an_agent_a_machine_or_somebody_else(
    scene: Scene, people: dict[str, str], name: str
) -> None:
    """A57: neither over HTTP nor by the command."""
    before = query(scene.acme, PEOPLE)
    reply = ask(scene, "POST", "/people", people["service"], {"name": name})
    assert (reply.status, reply.json["error"]["field"]) == (400, "name")
    assert scene.acme.try_carnet("people", "add", name).returncode == 2
    assert query(scene.acme, PEOPLE) == before


def test_the_rights_of_a_person_bound_what_a_token_of_hers_may_do(
    scene: Scene, people: dict[str, str]
) -> None:
    """A95: adopted, a token that could do everything does what a viewer may."""
    acme = scene.acme
    token = acme.new_token("was-everything", "--scope", "*")
    notice(acme)
    assert acme.chat("hi", "echo", token=token).status == 200
    assert ask(scene, "GET", "/people", token).status == 200
    acme.carnet("people", "link", "vera", "--token", "was-everything")
    notice(acme)
    assert acme.chat("hi", "echo", token=token).status == 403
    assert ask(scene, "GET", "/people", token).status == 403
    assert acme.get("/metrics", token=token).status == 403
    assert acme.get("/runs", token=token).status == 200
    assert acme.chat("hi", "echo", token=people["vera"]).status == 403


def test_nobody_reads_the_runs_of_another_by_the_name_of_a_token(scene: Scene) -> None:
    """A41: runs are recorded under the name of the token that called, which may be free again."""
    acme = scene.acme
    for name in ("nina", "oscar"):
        acme.carnet("people", "add", name)
    hers = acme.new_token("shared", "--person", "nina")
    run = acme.chat("my secret", token=hers).headers["x-tangle-runid"]
    acme.carnet("people", "end", "nina")
    for whose in (("--person", "oscar"), ()):
        refused = acme.try_carnet("tokens", "create", "shared", *whose)
        assert (refused.returncode, "was another's" in refused.stderr) == (2, True)
    his = acme.new_token("oscars", "--person", "oscar")
    assert acme.get(f"/runs/{run}", token=his).status == 404
    assert acme.get("/runs", token=his).json["runs"] == []
    acme.carnet("people", "end", "oscar")
    notice(acme)
