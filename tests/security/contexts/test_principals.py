"""As whom a call acts: the person or the token, its client and workspace, and its ceiling."""

import json

import pytest

from tests.security.contexts.requests import chain, fresh, seen_by
from tests.support.organisation import Organisation
from tests.support.served import executions


def person(site: Organisation) -> str:
    name = fresh("p")
    site.carnet("people", "add", name, "--role", "operator")
    return name


def test_a_token_of_nobody_acts_as_a_service_and_owns_what_it_says(site: Organisation) -> None:
    token = site.new_token(fresh("svc"), "--client", "bridge", "--workspace", "north")
    found = seen_by(site.chat("hi", "about", token=token, headers=chain()))
    assert found["safe"] == {
        "schema_version": 1,
        "effective_agent_id": "about",
        "auth_source": "service",
        "request_context": "rest",
        "acting_user_id": 0,
        "workspace_id": "north",
        "client_id": "bridge",
        "owner_type": "token",
        "has_conversation_owner": True,
        "has_capability_ceiling": False,
        "has_caller_context": True,
    }
    assert found["owner"] == ["token", found["token"]]


def test_a_persons_token_acts_for_her_and_she_owns_it(site: Organisation) -> None:
    token = site.new_token(fresh("hers"), "--person", person(site))
    found = seen_by(site.chat("hi", "about", token=token))
    assert found["safe"]["auth_source"] == "user"
    assert found["owner"] == ["user", str(found["safe"]["acting_user_id"])]


def test_a_token_that_stands_for_an_agent_owns_by_the_token_also_of_a_person(
    site: Organisation,
) -> None:
    token = site.new_token(fresh("of"), "--agent", "about", "--person", person(site))
    found = seen_by(site.chat("hi", "about", token=token))
    assert found["safe"]["auth_source"] == "agent_token"
    assert found["owner"] == ["token", found["token"]]


def test_a_token_that_stands_for_an_agent_calls_no_other(site: Organisation) -> None:
    token = site.new_token(fresh("bound"), "--agent", "about")
    before = executions(site.folder, "echo")
    reply = site.chat("hi", token=token)
    assert (reply.status, reply.code) == (403, "permission_missing")
    assert executions(site.folder, "echo") == before
    assert site.chat("hi", "about", token=token).status == 200


def test_an_autonomous_token_may_not_pay_unless_somebody_wrote_that_down(
    site: Organisation,
) -> None:
    safe = site.new_token(fresh("safe"), "--agent", "paid")
    reply = site.chat("hi", "paid", token=safe)
    assert (reply.status, reply.code) == (403, "permission_missing")
    written = site.new_token(
        fresh("written"), "--agent", "paid", "--allow", "pay", "--allow", "call:*"
    )
    assert site.chat("hi", "paid", token=written).status == 200
    scoped = site.new_token(
        fresh("scoped"), "--agent", "paid", "--scope", "call:paid", "--scope", "pay"
    )
    assert site.chat("hi", "paid", token=scoped).status == 200
    hers = site.new_token(fresh("hers"), "--agent", "paid", "--person", person(site))
    assert site.chat("hi", "paid", token=hers).status == 200


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--allow", "call:echo"), 403),
        (("--allow", "call:about"), 200),
        (("--deny", "call:about"), 403),
        (("--allow", "call:about", "--deny", "call:*"), 403),
    ],
)
def test_a_ceiling_bounds_what_a_token_may_do_and_deny_wins(
    site: Organisation, options: tuple[str, ...], status: int
) -> None:
    token = site.new_token(fresh("ceiling"), *options)
    assert site.chat("hi", "about", token=token).status == status


def test_a_ceiling_gives_nothing_that_was_not_granted(site: Organisation) -> None:
    token = site.new_token(fresh("narrow"), "--scope", "call:about", "--allow", "call:*")
    assert site.chat("hi", "about", token=token).status == 200
    assert site.chat("hi", token=token).status == 403


def test_the_ceiling_holds_for_what_is_called_for_the_token(site: Organisation) -> None:
    token = site.new_token(fresh("below"), "--deny", "call:echo")
    reply = site.chat("echo hi", "relay", token=token)
    assert (reply.status, reply.code) == (403, "permission_missing")


def test_the_ceiling_holds_for_pages_too(site: Organisation) -> None:
    token = site.new_token(fresh("blind"), "--deny", "run:read")
    assert site.get("/runs", token=token).status == 403


@pytest.mark.parametrize("whose", ["--agent", "--client", "--person"])
def test_all_tokens_of_an_agent_a_client_or_a_person_are_ended_at_once(
    site: Organisation, whose: str
) -> None:
    name = {"--agent": "about", "--client": fresh("app"), "--person": None}[whose] or person(site)
    theirs = [site.new_token(fresh("mass"), whose, name) for _ in range(3)]
    other = site.new_token(fresh("other"))
    ended = site.json("tokens", "revoke", whose, name)
    assert len(ended["tokens"]) >= 3
    site.stop()
    site.start()
    replies = [site.chat("hi", "about", token=token) for token in theirs]
    assert {(reply.status, reply.code) for reply in replies} == {(401, "token_invalid")}
    assert site.chat("hi", "about", token=other).status == 200


def test_what_a_token_was_made_with_is_shown_and_its_text_is_not(site: Organisation) -> None:
    name = fresh("shown")
    options = ("--agent", "about", "--client", "bridge", "--workspace", "w", "--chain-depth", "5")
    token = site.new_token(name, *options)
    text = site.carnet("tokens", "show", name, "--format", "json").stdout
    page = json.loads(text)
    assert token not in text
    assert (page["agent"], page["client"], page["workspace"]) == ("about", "bridge", "w")
    assert page["chain_depth"] == 5
    assert page["deny"] == ["admin:*", "approve", "memory:write", "pay", "tool:*", "triggers"]
