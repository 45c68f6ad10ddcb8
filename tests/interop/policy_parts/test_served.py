"""Policy parts to those who call us: what they are answered, and what resolves it."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from tests.interop.conftest import Databases
from tests.interop.policy_parts.scene import (
    ALIAS,
    POLICY,
    Binding,
    Scene,
    Sent,
    code_of,
    fresh,
    parts_of,
    played,
    policy,
    resolves,
    send,
    spoken,
    task,
    task_of,
    text_of,
)

BINDINGS: tuple[Binding, ...] = ("rpc", "http")
INVALID = "policy_state_invalid"
KINDS = {
    "approval": "approval_required",
    "consent": "consent_required",
    "input": "input_required",
    "sign_in https://acme.example/in": "unauthorized",
}


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("served"), database()) as scene:
        yield scene


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> Binding:
    found: Binding = request.param
    return found


def test_the_extension_is_on_our_cards_and_its_old_name_is_not(scene: Scene) -> None:
    card = scene.gateway.get("/agents/sells/.well-known/agent-card.json").json
    uris = [each["uri"] for each in card["capabilities"]["extensions"]]
    assert POLICY in uris
    assert ALIAS not in uris


@pytest.mark.parametrize("asked", KINDS)
def test_what_an_agent_asks_for_is_a_part_of_its_kind(
    scene: Scene, asked: str, binding: Binding
) -> None:
    answered = send(scene.gateway, "asks", asked, binding=binding)
    (part,) = parts_of(answered)
    assert part["kind"] == KINDS[asked]
    message = task_of(answered)["status"]["message"]
    assert message["metadata"][POLICY] == {"policies": [part]}
    assert POLICY in message["extensions"]
    assert answered.headers["a2a-extensions"] == POLICY
    if "https" in asked:
        assert part["url"] == "https://acme.example/in"
        assert part["auth_challenges"]


def test_a_payment_says_its_amount_beside_by_our_own_extension(scene: Scene) -> None:
    answered = send(scene.gateway, "sells")
    (part,) = parts_of(answered)
    assert part["kind"] == "payment_required"
    assert part["message"] == "Half a credit."
    assert part["state"]
    assert "data" not in part
    (own,) = task_of(answered)["status"]["message"]["metadata"][INTERRUPT_URI]["interrupts"]
    assert (own["amount"], own["currency"], own["state"]) == ("0.5", "credits", part["state"])


def test_a_link_of_ours_that_leads_elsewhere_is_not_in_the_part(scene: Scene) -> None:
    for url in ("http://acme.example/x", "https://globex.example/x"):
        (part,) = parts_of(send(scene.gateway, "asks", f"consent {url}"))
        assert "url" not in part


@pytest.mark.parametrize("uris", [POLICY, ALIAS, ""])
def test_who_did_not_ask_for_parts_is_given_none(scene: Scene, uris: str) -> None:
    answered = send(scene.gateway, "sells", uris=uris)
    assert bool(parts_of(answered)) == bool(uris)
    assert answered.headers.get("a2a-extensions") == (POLICY if uris else None)


def test_who_speaks_mentionable_is_given_them_as_well(scene: Scene) -> None:
    capable = {"mentionable": {"recipient_capabilities": {"mention_relay": {"kind": "none"}}}}
    assert parts_of(send(scene.gateway, "sells", uris="", metadata=capable))


@pytest.mark.parametrize("kind", ["forbidden", "unavailable_for_legal_reasons"])
def test_a_refusal_is_told_as_a_part_with_the_words_of_who_refuses(
    scene: Scene, kind: str, binding: Binding
) -> None:
    scene.replies(lambda _: spoken(policy(kind)))
    answered = send(scene.gateway, "paid-search", binding=binding)
    assert task_of(answered)["status"]["state"] == "TASK_STATE_FAILED"
    (part,) = parts_of(answered)
    assert (part["kind"], part["message"]) == (kind, f"Please: {kind}.")
    assert not parts_of(send(scene.gateway, "paid-search", uris=""))


@pytest.mark.parametrize("uris", [POLICY, ALIAS, ""])
def test_a_refusal_before_there_is_a_task_is_told_as_a_part_to_who_wants_it(
    scene: Scene, uris: str, binding: Binding
) -> None:
    refused = send(scene.gateway, "sells", uris=uris, token="nobodys", binding=binding)
    assert code_of(refused)[0] == 401
    error = refused.json()["error"]
    _, *parts = error.get("data") or error["details"]
    assert bool(parts) == bool(uris)
    for part in parts:
        assert part["@type"] == POLICY
        assert part["kind"] == "unauthorized"
        assert part["code"].startswith("carnet:")
        assert part["message"] == error["message"]
        assert part["auth_challenges"] == [{"scheme": "Bearer"}]
    malformed = send(scene.gateway, "sells", metadata=resolves("", outcome="accepted"), uris=uris)
    assert len(malformed.json()["error"]["data"]) == 1  # which is no matter of policy


def test_an_unknown_kind_is_preserved_up_and_down(scene: Scene, binding: Binding) -> None:
    state = fresh()
    given = {"title": "Are you a robot?", "state": state, "puzzle": "8+1", "data": {"com.x.y": 1}}

    def reply(sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            return spoken(policy("com.example.captcha", **given))
        return spoken({"text": f"you say {sent.resolution['solution']}"})

    scene.replies(reply)
    waits = send(scene.gateway, "paid-search", binding=binding)
    (part,) = parts_of(waits)
    assert part["kind"] == "com.example.captcha"
    assert (part["title"], part["puzzle"], part["state"]) == ("Are you a robot?", "8+1", state)
    assert part["data"]["com.x.y"] == 1
    done = send(
        scene.gateway, "paid-search", binding=binding, metadata=resolves(state, solution="9")
    )
    assert text_of(done) == "you say 9"


SPELLINGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "nested": lambda state: {"metadata": resolves(state)},
    "dotted": lambda state: {
        "metadata": {"mentionable.policy_resolution": {"in_reply_to_state": state}}
    },
    "request": lambda state: {"params": {"metadata": resolves(state)}},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("by_task", [False, True], ids=["by state", "by task"])
def test_a_state_is_good_once(
    scene: Scene, binding: Binding, spelling: str, *, by_task: bool
) -> None:
    waits = send(scene.gateway, "sells", binding=binding)
    (part,) = parts_of(waits)
    more = SPELLINGS[spelling](part["state"])
    if by_task:
        more["taskId"] = task_of(waits)["id"]
    done = send(scene.gateway, "sells", "done", binding=binding, **more)
    assert text_of(done) == "the report"
    assert task_of(done)["id"] == task_of(waits)["id"]
    twice = send(scene.gateway, "sells", "done", binding=binding, **more)
    assert code_of(twice) == (409 if binding == "http" else 200, INVALID)


def test_an_unknown_state_is_refused_and_nothing_runs(scene: Scene, binding: Binding) -> None:
    unknown = send(scene.gateway, "sells", binding=binding, metadata=resolves("never-issued"))
    assert code_of(unknown)[1] == INVALID
    waits = send(scene.gateway, "sells", binding=binding)
    name = task_of(waits)["id"]
    other = send(
        scene.gateway, "sells", binding=binding, metadata=resolves("never-issued"), taskId=name
    )
    assert code_of(other)[1] == INVALID
    (part,) = parts_of(waits)
    at_another = send(scene.gateway, "asks", binding=binding, metadata=resolves(part["state"]))
    assert code_of(at_another)[1] == INVALID
    assert text_of(send(scene.gateway, "sells", metadata=resolves(part["state"]))) == "the report"


def test_another_caller_with_the_right_state_is_told_nothing(
    scene: Scene, binding: Binding
) -> None:
    stranger = scene.gateway.json("tokens", "create", f"stranger-{binding}")["token"]
    (part,) = parts_of(send(scene.gateway, "sells"))
    answers = [
        send(scene.gateway, "sells", token=stranger, binding=binding, metadata=resolves(state))
        for state in (part["state"], "never-issued")
    ]
    assert [code_of(each)[1] for each in answers] == [INVALID, INVALID]
    assert len({each.text.replace(part["state"], "never-issued") for each in answers}) == 1
    assert text_of(send(scene.gateway, "sells", metadata=resolves(part["state"]))) == "the report"


def test_a_refusal_by_resolution_is_heard_by_the_agent(scene: Scene) -> None:
    (part,) = parts_of(send(scene.gateway, "sells"))
    no = send(scene.gateway, "sells", metadata=resolves(part["state"], outcome="rejected"))
    assert text_of(no) == "no report"


@pytest.mark.parametrize(
    "broken",
    [
        "S",
        {},
        {"in_reply_to_state": 7},
        {"in_reply_to_state": ""},
        {"in_reply_to_state": "s", "outcome": "perhaps"},
        {"in_reply_to_state": "s", "outcome": ["accepted"]},
        {"in_reply_to_state": "s" * 2000},
        {"in_reply_to_state": "s", "proof": "x" * 20_000},
    ],
)
def test_a_broken_resolution_is_refused(scene: Scene, broken: object) -> None:
    metadata = {"mentionable": {"policy_resolution": broken}}
    assert code_of(send(scene.gateway, "sells", metadata=metadata))[1] == "invalid_request"


def test_two_resolutions_that_differ_are_refused(scene: Scene) -> None:
    both = {**resolves("one"), "mentionable.policy_resolution": {"in_reply_to_state": "other"}}
    assert code_of(send(scene.gateway, "sells", metadata=both))[1] == "malformed_caller_context"


def test_the_state_of_a_resolution_stands_in_no_record(scene: Scene) -> None:
    waits = send(scene.gateway, "sells")
    (part,) = parts_of(waits)
    done = send(scene.gateway, "sells", metadata=resolves(part["state"]))
    assert part["state"] not in done.text
    run = done.headers["x-tangle-runid"]
    assert part["state"] not in scene.gateway.carnet("run", "show", run, "--full").stdout
    assert part["state"].encode() not in scene.gateway.written()


def test_a_task_that_waits_tells_its_parts_again_when_it_is_asked_for(scene: Scene) -> None:
    waits = send(scene.gateway, "sells")
    fields = {"authorization": f"Bearer {scene.gateway.token}", "a2a-version": "1.0"}
    url = f"{scene.gateway.url}/agents/sells/a2a/tasks/{task_of(waits)['id']}"
    shown = httpx.get(url, headers={**fields, "a2a-extensions": POLICY}).json()
    parts = shown["status"]["message"]["parts"]
    assert [part["data"] for part in parts if "data" in part] == parts_of(waits)
    assert INTERRUPT_URI in shown["status"]["message"]["metadata"]
    plain = httpx.get(url, headers=fields).json()
    assert POLICY not in plain["status"]["message"]["metadata"]


# ------------------------------------------------------------------ combining with PolicyPart


@pytest.mark.parametrize("agent", ["orchestrator", "fans"])
@pytest.mark.parametrize("form", ["message", "task"])
def test_a_payment_that_a_sibling_asks_for_is_surfaced_paid_and_forwarded(
    scene: Scene, agent: str, form: str, binding: Binding
) -> None:
    """The worked example of the seed: the user, an orchestrator, @paid-search and a payment."""
    state = fresh()
    part = policy("payment_required", state=state, title="Search costs a cent")

    def reply(sent: Sent) -> dict[str, Any]:
        if sent.agent == "translator":
            return spoken({"text": "translated"})
        if sent.resolution is None:
            return spoken(part) if form == "message" else task("INPUT_REQUIRED", part)
        assert sent.resolution["in_reply_to_state"] == state
        return spoken({"text": "found it"})

    scene.replies(reply)
    asked = f"find {agent} {form} {binding}"
    waits = send(scene.gateway, agent, asked, binding=binding)
    (surfaced, *_) = parts_of(waits)
    assert surfaced["kind"] == "payment_required"
    assert (surfaced["state"], surfaced["title"]) == (state, "Search costs a cent")
    resolved = [sent for sent in scene.sent if sent.resolution]
    assert not resolved
    done = send(scene.gateway, agent, "paid", binding=binding, metadata=resolves(state))
    assert "found it" in text_of(done)
    (forwarded,) = [sent for sent in scene.sent if sent.resolution]
    assert (forwarded.agent, forwarded.text) == ("paid-search", asked)
    assert "translated" in text_of(done)
    assert len([sent for sent in scene.sent if sent.agent == "translator"]) == 1
