"""The registry of hosts: by which key or certificate a context is verified, and what that gives."""

import base64

import pytest

from tests.security.contexts.conftest import WRITTEN_KEY
from tests.security.contexts.requests import KEY, chain, fresh, listed, run_of, seen_by, turn_of
from tests.support.organisation import Organisation
from tests.support.served import executions

OWN = base64.b64encode(b"abc").decode()  # whose fingerprint is written in the configuration


def refuse(site: Organisation, headers: list[tuple[str, str]]) -> None:
    """It is refused as a host that nobody could verify, and nothing runs."""
    before = executions(site.folder, "echo")
    reply = site.chat("hi", headers=headers)
    assert (reply.status, reply.code) == (401, "caller_not_verified")
    assert executions(site.folder, "echo") == before


def test_a_host_that_shows_its_key_is_verified_and_shown_so(site: Organisation) -> None:
    url, key = listed(site, "--metadata", "team=docs")
    reply = site.chat("hi", "about", headers=chain(fresh("root"), host=url, key=key))
    context = seen_by(reply)["context"]
    assert (context["verified"], context["metadata"]) == (True, {"team": "docs"})
    assert turn_of(site, reply)["context"]["caller"] == f"source@{url} (verified)"


@pytest.mark.parametrize("spelled", ["{}/", "{}:443"])
def test_a_host_is_the_same_however_it_spells_its_url(site: Organisation, spelled: str) -> None:
    url, key = listed(site)
    headers = chain(host=spelled.format(url), key=key)
    assert seen_by(site.chat("hi", "about", headers=headers))["context"]["verified"] is True


def test_a_verified_host_joins_a_run_by_its_root_and_grows_it(site: Organisation) -> None:
    url, key = listed(site)
    root = fresh("root")
    first = site.chat("hi", headers=chain(root, "1", host=url, key=key))
    second = site.chat("echo hi", "relay", headers=chain(root, "2", host=url, key=key))
    assert (run_of(first), run_of(second)) == (root, root)
    turns = site.get(f"/runs/{root}").json["turns"]
    assert sorted(turn["depth"] for turn in turns) == [1, 2]
    assert [child["depth"] for turn in turns for child in turn["children"]] == [3]


def test_a_key_that_is_wrong_another_hosts_or_of_nobody_is_refused_alike(
    site: Organisation,
) -> None:
    url, key = listed(site)
    other, other_key = listed(site)
    refuse(site, chain(host=url, key="cck_wrong"))
    refuse(site, chain(host=url, key=other_key))
    refuse(site, chain(host=f"{url}/below", key=key))
    refuse(site, chain(host="https://unknown.example", key=key))
    assert site.chat("hi", headers=chain(host=other, key=other_key)).status == 200


def test_a_key_opens_nothing_as_a_token_and_a_token_nothing_as_a_key(site: Organisation) -> None:
    url, key = listed(site)
    assert site.chat("hi", token=key).status == 401
    refuse(site, chain(host=url, key=site.token))


def test_a_key_is_shown_once_and_is_in_no_log_list_page_or_file(site: Organisation) -> None:
    url, key = listed(site)
    reply = site.chat("hi", headers=chain(fresh("root"), host=url, key=key))
    page = site.get(f"/runs/{run_of(reply)}?full=true").body.decode()
    texts = [page, site.carnet("callers", "list", "--format", "json").stdout, site.log.read_text()]
    texts += [path.read_bytes().decode("latin-1") for path in (site.folder / "var").iterdir()]
    assert url in texts[1]
    assert not any(key in text for text in texts)


def test_a_rotated_key_holds_beside_the_one_before_until_that_ends(site: Organisation) -> None:
    url, former = listed(site)
    key = str(site.json("callers", "rotate", url)["key"])
    for each in (former, key):
        assert site.chat("hi", headers=chain(host=url, key=each)).status == 200
    last = str(site.json("callers", "rotate", url, "--overlap", "0s")["key"])
    assert site.chat("hi", headers=chain(host=url, key=last)).status == 200
    site.stop()  # what another process wrote is seen within a second; at once after a start
    site.start()
    refuse(site, chain(host=url, key=key))
    refuse(site, chain(host=url, key=former))


def test_a_host_that_was_ended_is_claimed_again_and_its_key_opens_nothing(
    site: Organisation,
) -> None:
    url, key = listed(site)
    site.carnet("callers", "end", url)
    site.stop()
    site.start()
    refuse(site, chain(host=url, key=key))
    context = seen_by(site.chat("hi", "about", headers=chain(host=url)))["context"]
    assert context["verified"] is False
    assert url not in site.carnet("callers", "list").stdout
    assert url in site.carnet("callers", "list", "--all").stdout
    again = str(site.json("callers", "add", url)["key"])
    assert site.chat("hi", headers=chain(host=url, key=again)).status == 200


def test_a_host_without_its_key_is_claimed_whatever_is_listed(site: Organisation) -> None:
    url, _ = listed(site)
    context = seen_by(site.chat("hi", "about", headers=chain(host=url)))["context"]
    assert context["verified"] is False


def test_a_host_of_the_file_is_believed_by_the_key_there(site: Organisation) -> None:
    headers = chain(host="https://written.example", key=WRITTEN_KEY)
    context = seen_by(site.chat("hi", "about", headers=headers))["context"]
    assert (context["verified"], context["metadata"]) == (True, {"team": "docs"})
    done = site.try_carnet("callers", "rotate", "https://written.example")
    assert done.returncode == 2
    assert "carnet.toml" in done.stderr


def test_a_certificate_that_a_trusted_proxy_tells_verifies_its_host(site: Organisation) -> None:
    own, other = ("client-cert", f":{OWN}:"), ("client-cert", ":eHl6:")
    headers = chain(host="https://certified.example")
    for shown, verified in ((own, True), (other, False), (("client-cert", "::"), False)):
        found = seen_by(site.chat("hi", "about", headers=[*headers, shown]))
        assert found["context"]["verified"] is verified
    assert seen_by(site.chat("hi", "about", headers=headers))["context"]["verified"] is False
    broken = site.chat("hi", headers=[*headers, ("client-cert", ":not base64:")])
    assert (broken.status, broken.code) == (400, "malformed_caller_context")


def test_calls_of_a_verified_host_count_in_one_rate_whichever_token_it_shows(
    site: Organisation,
) -> None:
    url, key = listed(site, "--rate", "2/h")
    tokens = [site.new_token(fresh("rated")) for _ in range(2)]
    headers = chain(host=url, key=key)
    asked = [site.chat("hi", token=tokens[n % 2], headers=headers) for n in range(3)]
    assert [reply.status for reply in asked] == [200, 200, 429]
    assert asked[2].code == "rate_limited"
    assert site.chat("hi", token=tokens[0], headers=chain(host=url)).status == 200


def test_a_key_alone_says_nothing(site: Organisation) -> None:
    assert site.chat("hi", headers=[(KEY, "cck_whatever")]).status == 200


def test_no_right_follows_from_what_is_verified(site: Organisation) -> None:
    url, key = listed(site)
    narrow = site.new_token(fresh("narrow"), "--scope", "call:echo")
    reply = site.chat("hi", "about", token=narrow, headers=chain(host=url, key=key))
    assert (reply.status, reply.code) == (403, "permission_missing")
