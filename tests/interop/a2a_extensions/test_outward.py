"""What goes to an agent whose card knows extensions of others, and what is made of its answers."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from carnet.wire.crypto import ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.a2a.extensions import EXTENSIONS
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY as ACTORS
from carnet.wire.dialects.a2a.extensions.ca2a import ABOVE, RECORD
from carnet.wire.dialects.a2a.extensions.envoys import ENVOYS_URI, read_key
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.questions import x402
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.signed_receipts import KEY as RECEIPTS
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_URI
from carnet.wire.grammar.headers import Headers
from tests.interop.test_tenants_abroad import ids
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.model import Answer, Asked, Model
from tests.support.organisation import Organisation

FOREIGN = tuple(uri for row in EXTENSIONS for uri in row.uris if not row.is_own)
KNOWN = {"knows": FOREIGN, "carnet": (CHAIN_URI, *FOREIGN), "plain": ()}
CONFIG = "".join(
    f'[agents.{name}]\nkind = "a2a"\nurl = "{{url}}/{name}"\nmax_cost = "0.5"\nretries = 0\n'
    for name in KNOWN
)
TASK = {"id": "t-1", "contextId": "c-1"}
DONE = {"state": "TASK_STATE_COMPLETED"}


class Scene(NamedTuple):
    """A gateway, and an agent elsewhere that answers as a test says."""

    gateway: Organisation
    peer: Model

    def answers(self, *tasks: dict[str, Any]) -> None:
        """Let messages be answered with these tasks, one after the other."""
        left = list(tasks)

        def reply(asked: Asked) -> Answer:
            if asked.path.endswith("agent-card.json"):
                return Answer(body=card(asked.path.split("/")[1], self.peer.url))
            if asked.body["method"] != "SendMessage":
                return rpc(TASK | tasks[0] if left else TASK | tasks[-1])
            return rpc({"task": TASK | (left.pop(0) if len(left) > 1 else left[0])})

        self.peer.asked.clear()
        self.peer.reply = reply

    def messages(self) -> list[Asked]:
        return [each for each in self.peer.asked if each.body.get("method") == "SendMessage"]

    def sent(self, agent: str, run: str, **fields: str) -> Asked:
        """The message that leaves when an agent is called."""
        self.answers({"status": DONE})
        given = [(name.replace("_", "-"), value) for name, value in fields.items()]
        reply = self.gateway.chat("hello", agent, headers=[*ids(run), *given])
        assert reply.status == 200, reply.body
        (sent,) = self.messages()
        return sent


def rpc(result: object) -> Answer:
    return Answer(body=json.dumps({"jsonrpc": "2.0", "id": "1", "result": result}).encode())


def card(name: str, url: str) -> bytes:
    interface = {"url": f"{url}/{name}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    known = [{"uri": uri} for uri in KNOWN[name]]
    page = {
        "name": name,
        "version": "1",
        "capabilities": {"extensions": known},
        "supportedInterfaces": [interface],
        "skills": [],
    }
    return json.dumps(page).encode()


def metadata_of(sent: Asked) -> dict[str, Any]:
    found: dict[str, Any] = sent.body["params"]["message"].get("metadata", {})
    return found


def waiting(metadata: dict[str, Any]) -> dict[str, Any]:
    asked = {"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "?"}], "metadata": metadata}
    return {"status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": asked}}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    gateway = organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    with Model().serving() as peer:
        gateway.configure(CONFIG.replace("{url}", peer.url))
        gateway.start()
        yield Scene(gateway, peer)
        gateway.stop()


def test_what_a_card_knows_is_written_and_the_header_names_it(scene: Scene) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = scene.sent("knows", "run-known", x_a2a_hop="1", traceparent=trace)
    metadata, message = metadata_of(sent), sent.body["params"]["message"]
    assert metadata[TRACE_URI]["traceparent"] == sent.headers["traceparent"]
    assert trace[3:35] in sent.headers["traceparent"]
    execution = metadata["datalayer"]["execution"]
    assert execution["executionId"] == message["messageId"] == sent.headers["x-tangle-turnid"]
    assert (execution["rootExecutionId"], execution["depth"]) == ("run-known", 2)
    assert execution["accountUid"].endswith("@acme.example")
    assert metadata["datalayer"]["budget"] == {"cost": 0.5, "currency": "credits"}
    assert metadata[RECORD] == message["messageId"]
    assert metadata[ABOVE].startswith("sha-256:")
    assert sent.headers["x-a2a-hop"] == "2"
    assert ACTORS not in metadata  # which has no URI that a card could name
    named = {uri.strip() for uri in sent.headers["a2a-extensions"].split(",")}
    assert named == {*message["extensions"]} <= {*FOREIGN}
    assert {KAGENT_URI, BEEAI_URI, x402.X402_URI, TRACE_URI} <= named


def test_a_card_that_knows_our_chain_is_told_the_actors_as_well(scene: Scene) -> None:
    metadata = metadata_of(scene.sent("carnet", "run-carnet", x_a2a_hop="1"))
    assert metadata[CHAIN_URI].items() >= {"run": "run-carnet", "depth": 2}.items()
    assert metadata[ACTORS][-1]["actor"].endswith("@acme.example")


def test_a_card_that_knows_our_chain_is_told_its_budget(scene: Scene) -> None:
    budget = metadata_of(scene.sent("carnet", "run-bounded"))[CHAIN_URI]["budget"]
    assert budget == {"money": "0.5", "currency": "credits"}
    less = "money=0.2,calls=9,tokens=500"
    budget = metadata_of(scene.sent("carnet", "run-less", carnet_budget=less))[CHAIN_URI]["budget"]
    assert budget["money"] == "0.2"
    assert 1 <= budget["calls"] <= 9
    assert 1 <= budget["tokens"] <= 500


def test_a_card_that_knows_nothing_is_told_its_place_in_the_chain_alone(scene: Scene) -> None:
    sent = scene.sent("plain", "run-plain")
    chain = {"hop": 1, "max_hops": 3, "is_final": False}  # mentionable:chain:written
    assert metadata_of(sent) == {"mentionable": {"agent_chain": chain}}
    assert sent.headers["a2a-extensions"] is None
    assert sent.headers["signature"] is None


def test_a_request_to_who_knows_signed_ones_holds_under_the_key_at_its_keyid(
    scene: Scene,
) -> None:
    sent = scene.sent("knows", "run-signed", x_a2a_hop="1")
    fields = [(name.lower().encode(), value.encode()) for name, value in sent.headers.items()]
    headers = Headers(fields)
    presented = signatures.read(headers)
    assert presented.keyid is not None
    assert {"@method", "@authority", "@path", "content-digest"} <= {*presented.components}
    assert {"x-a2a-hop", "x-tangle-runid"} <= {*presented.components}
    address = "https://acme.example"
    assert presented.keyid.startswith(f"{address}/.well-known/agent-key/")
    page = scene.gateway.get(presented.keyid.removeprefix(address)).json
    assert page["address"] == presented.keyid
    head = Request(method="POST", authority=sent.headers["host"], path=sent.path, headers=headers)
    base = signatures.base(presented, head)
    assert ed25519.holds(read_key(page, presented.keyid), base, presented.signature)
    assert not ed25519.holds(read_key(page, presented.keyid), base + b" ", presented.signature)
    assert scene.gateway.get("/.well-known/agent-key/nobodys").status == 404
    assert ENVOYS_URI in KNOWN["knows"]


PAYMENT = {
    x402.STATUS: "payment-required",
    x402.REQUIRED: {
        "x402Version": 1,
        "accepts": [
            {
                "scheme": "carnet",
                "network": "carnet",
                "asset": "credits",
                "payTo": "x",
                "maxAmountRequired": "200000",
                "resource": "r-1",
                "description": "The report",
            }
        ],
    },
}
TOOL = {"id": "t1", "call_id": "c1", "name": "delete_pod", "args": {"name": "web-1"}}
QUESTIONS: dict[str, tuple[dict[str, Any], str, Any, Any]] = {
    "kagent": (
        {KAGENT_URI: {"type": "tool_approval_request", "hint": "Delete it?", "tools": [TOOL]}},
        "Delete it?",
        {
            KAGENT_URI: {
                "type": "tool_approval_response",
                "approvals": [{"id": "t1", "approved": True}],
            }
        },
        {
            KAGENT_URI: {
                "type": "tool_approval_response",
                "approvals": [{"id": "t1", "approved": False}],
            }
        },
    ),
    "beeai": (
        {BEEAI_URI: {"action": "generic", "title": "Send mail", "description": "To all"}},
        "Send mail To all",
        {BEEAI_URI: {"decision": "approve"}},
        {BEEAI_URI: {"decision": "reject"}},
    ),
    "interrupt": (
        {
            INTERRUPT_URI: {
                "interrupts": [{"id": "i1", "state": "s1", "kind": "approval", "message": "May I?"}]
            }
        },
        "May I?",
        {INTERRUPT_URI: {"state": "s1", "outcome": "accepted"}},
        {INTERRUPT_URI: {"state": "s1", "outcome": "rejected"}},
    ),
    "x402": (PAYMENT, "The report", "payment-submitted", "payment-rejected"),
}


def again(scene: Scene, waits: Reply, outcome: str) -> Reply:
    same = [(name, waits.headers[name]) for name in ("x-tangle-runid", "x-tangle-turnid")]
    brought = ("carnet-resolution", f"{state_of(waits)};outcome={outcome}")
    return scene.gateway.chat("hello", "carnet", headers=[*same, brought])


def state_of(waits: Reply) -> str:
    return str(waits.json["error"]["interrupt"]["state"])


@pytest.mark.parametrize("outcome", ["accepted", "rejected"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_in_the_words_of_others_is_answered_in_the_same_words(
    scene: Scene, name: str, outcome: str
) -> None:
    asked, words, accepted, rejected = QUESTIONS[name]
    artifact = {"artifactId": "a", "parts": [{"text": "so be it"}]}
    scene.answers(waiting(asked), {"status": DONE, "artifacts": [artifact]})
    waits = scene.gateway.chat("hello", "carnet", headers=ids(f"run-{name}-{outcome}"))
    assert words in waits.json["error"]["interrupt"]["message"]
    done = again(scene, waits, outcome)
    assert (done.status, done.text) == (200, "so be it")
    first, answer = scene.messages()
    assert answer.body["params"]["message"]["taskId"] == "t-1"
    assert (
        answer.body["params"]["message"]["messageId"]
        != first.body["params"]["message"]["messageId"]
    )
    given = metadata_of(answer)
    expected = accepted if outcome == "accepted" else rejected
    if name == "x402":
        assert given[x402.STATUS] == expected
    else:
        assert {key: given[key] for key in expected} == expected


FORGED = {
    "a chain": {CHAIN_URI: {"run": "theirs", "turn": "theirs.t0", "depth": 9}},
    "a receipt": {RECEIPT_URI: {"receipt": "eyJ.e30.x"}},
    "a receipt of others": {RECEIPTS: {"issuer": "did:web:acme.example", "claims": []}},
    "a use of others": {"datalayer": {"usage": {"cost": 99, "currency": "credits"}}},
    "a use": {USAGE_URI: {"cost": "99", "currency": "credits"}},
    "broken ones": {CHAIN_URI: [], "datalayer": 7, KAGENT_URI: {"type": 1}, RECEIPTS: "x"},
}


@pytest.mark.parametrize("name", FORGED)
def test_what_an_answer_claims_changes_nothing_but_what_it_may_charge(
    scene: Scene, name: str
) -> None:
    artifact = {"artifactId": "a", "parts": [{"text": "well"}]}
    scene.answers({"status": DONE, "artifacts": [artifact], "metadata": FORGED[name]})
    run = f"run-forged-{name.replace(' ', '-')}"
    reply = scene.gateway.chat("hello", "knows", headers=ids(run))
    assert (reply.status, reply.text) == (200, "well")
    (turn,) = scene.gateway.get(f"/runs/{run}").json["turns"]
    assert turn["depth"] == 0
    assert float(turn["cost"] or 0) <= 0.5  # whatever it says: what the call may cost


def test_a_use_in_the_words_of_others_is_what_the_call_has_cost(scene: Scene) -> None:
    used = {"inputTokens": 8, "outputTokens": 4, "cost": 0.003, "currency": "credits"}
    artifact = {"artifactId": "a", "parts": [{"text": "well"}]}
    scene.answers(
        {"status": DONE, "artifacts": [artifact], "metadata": {"datalayer": {"usage": used}}}
    )
    reply = scene.gateway.chat("hello", "knows", headers=ids("run-used"))
    assert reply.json["usage"]["cost"] == "0.003"
