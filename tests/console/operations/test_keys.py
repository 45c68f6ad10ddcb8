"""Keys and trust, by page and by the API that it asks."""

import pytest

from tests.console.owner.test_chat import send
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation


def test_a_key_is_rotated_with_an_overlap_and_revoked(acme: Organisation, admin: Somebody) -> None:
    browser = admin.browser()
    (old,) = browser.send("GET", "/console/keys.json").json["keys"]
    reply = send(browser, "/console/keys/rotate", lead="0", overlap="1")
    assert (reply.status, reply.headers.get("hx-redirect")) == (204, "/console/keys"), reply.body
    new, former = browser.send("GET", "/console/keys.json").json["keys"]
    assert (new["state"], former["state"], former["kid"]) == ("active", "retiring", old["kid"])
    shown = acme.get("/.well-known/jwks.json").json["keys"]
    assert {key["kid"] for key in shown} == {new["kid"], old["kid"]}
    page = browser.send("GET", "/console/keys").body.decode()
    assert (new["kid"] in page, "retiring" in page) == (True, True)
    assert send(browser, f"/console/keys/{old['kid']}/revoke").status == 204
    states = {key["kid"]: key["state"] for key in browser.send("GET", "/keys").json["keys"]}
    assert states[old["kid"]] == "revoked"
    assert acme.json("keys", "list", "--all")["keys"][0]["kid"] == new["kid"]


@pytest.mark.parametrize(
    "body", [{"lead": -1}, {"lead": "1"}, {"overlap": True}, {"overlap": 10**9}, {"other": 1}]
)
def test_a_rotation_that_makes_no_sense_is_refused(
    admin: Somebody, body: dict[str, object]
) -> None:
    browser = admin.browser()
    before = browser.send("GET", "/keys").json["keys"]
    assert browser.post("/keys/rotate", body).status == 400
    assert browser.post("/keys/unknown/revoke").status == 400
    assert browser.send("GET", "/keys").json["keys"] == before


def test_nobody_but_an_admin_sees_or_changes_keys(
    viewer: Somebody, operator: Somebody, admin: Somebody
) -> None:
    before = admin.browser().send("GET", "/keys").json["keys"]
    for somebody in (viewer, operator):
        browser = somebody.browser()
        for path in ("/keys", "/console/keys", "/console/keys.json"):
            assert browser.send("GET", path).status == 403
        assert browser.post("/keys/rotate").status == 403
        assert browser.post(f"/keys/{before[0]['kid']}/revoke").status == 403
        assert send(browser, "/console/keys/rotate", lead="0").status == 403
    assert admin.browser().send("GET", "/keys").json["keys"] == before


def test_no_private_key_and_no_token_of_ours_is_told(acme: Organisation, admin: Somebody) -> None:
    reply = admin.browser().send("GET", "/console/keys.json")
    members = {name for key in reply.json["keys"] for name in key}
    assert members == {"kid", "state", "key", "created", "signs_from", "not_after"}
    assert all("token" not in peer for peer in reply.json["peers"])
    assert acme.token.encode() not in reply.body
