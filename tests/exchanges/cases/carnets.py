"""Between two Carnets: travel documents by hand, and the whole way from Acme to Globex and back."""

import itertools
from typing import Any

from tests.exchanges.cases.chains import CHAT, DEPTH, PARENT, RUN, TURN
from tests.exchanges.cases.signed import Signing
from tests.exchanges.scene import BOB, INITECH
from tests.exchanges.stage import Stage
from tests.support.http import chat_body
from tests.support.signing.signed import Signed, digest, now, sign, token

ACME = "acme.example"
USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


class Travelling:
    """Signs as another Carnet does."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._numbers = itertools.count(1)

    def claims(self, body: bytes, **changed: Any) -> dict[str, Any]:
        number = next(self._numbers)
        whole = {
            "iss": "initech.example",
            "aud": ACME,
            "iat": int(now()),
            "exp": int(now()) + 60,
            "run": f"travel-run-{number}",
            "turn": f"travel-turn-{number}",
            "d": 1,
            "l": 3,
            "dig": digest(body),
            **changed,
        }
        return {name: value for name, value in whole.items() if value is not ...}

    def request(
        self,
        agent: str = "echo",
        text: str = "hi",
        *,
        headers: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        nonce: str = "",
        without: tuple[str, ...] = (),
        paper: str = "",
        age: int = 0,
        **changed: Any,
    ) -> Signed:
        """A signed call; `changed` are claims of its document."""
        data = chat_body(text, None, **(body or {}))
        claims = self.claims(data, **changed)
        fields = {
            "content-type": "application/json",
            "content-digest": digest(data),
            "x-tangle-runid": str(claims["run"]),
            "x-tangle-turnid": str(claims["turn"]),
            "x-tangle-forwarded-depth": str(claims["d"]),
            **(headers or {}),
            "carnet": paper or token(INITECH, claims),
        }
        target = f"/agents/{agent}{CHAT}"
        request = Signed(method="POST", target=target, headers=tuple(fields.items()), body=data)
        nonce = nonce or f"travel-nonce-{next(self._numbers)}"
        parameters = (
            f';created={int(now()) - age};keyid="{INITECH.kid}";nonce="{nonce}";tag="carnet"'
        )
        covered = [
            name for name in ("@method", "@authority", "@path", *fields) if name not in without
        ]
        return sign(
            INITECH,
            request,
            components=covered,
            parameters=parameters,
            host=self.host,
            newline=False,
        )


def documents(stage: Stage) -> None:
    """What another Carnet may say of itself, and what is refused."""
    travelling = Travelling(f"127.0.0.1:{stage.scene.gateways['acme'].port}")

    def call(title: str, *given: str, **how: Any) -> None:
        stage.send(title, travelling.request(*given, **how), host=travelling.host)

    call("a call with a document")
    call("a call with a document, streamed", "words", "one two", body=USAGE)
    call("a call with a document at a price", "paid")
    call("a call with a document that fails", "broken")
    call("a call with a document that fails in its stream", "half", body={"stream": True})
    call(
        "where it stands",
        "told",
        headers={"x-tangle-parent-turnid": "their-parent"},
        parent="their-parent",
    )
    call("for somebody", "told", obo=["alice@initech.example"])
    call(
        "with the payer's credential",
        "paid",
        headers={"x-tangle-forwarded-authorization": "Bearer sk-theirs"},
    )
    call("a skill", "clerk", body={"carnet": {"skill": "secret", "payload": {}}})
    call("an agent for peers", "private")
    call("at its last depth", d=3, l=3)
    call("beyond its last depth", d=4, l=3)
    call("with a limit that is not ours", "onward", "onward onward", d=1, l=9)
    call("with a lower limit", "onward", "onward onward", d=1, l=2)
    call("for somebody else", aud="globex.example")
    call("by somebody else", iss="globex.example")
    call("expired", iat=int(now()) - 300, exp=int(now()) - 200)
    call("for ever", exp=int(now()) + 86_400)
    call("of another body", dig=digest(b"other"))
    call("of another run than the header", headers={"x-tangle-runid": "another"})
    call("of another depth than the header", headers={"x-tangle-forwarded-depth": "2"})
    call("without its audience", aud=...)
    call("no document", paper="nonsense")
    call("a document that is too long", paper="e" * 4097)
    call("a document that is not covered", without=("carnet",))
    call("a header that is not covered", without=("x-tangle-turnid",))
    call("a host that is not covered", without=("@authority",))
    call("an old signature", age=120)
    call("a nonce", nonce="travel-nonce-once")
    call("the same nonce again", nonce="travel-nonce-once")
    again = {"run": "travel-again", "turn": "travel-again-turn"}
    call("a turn", "paid", **again)
    call("the same turn again", "paid", **again)
    call("the same turn with another text", "paid", "other", **again)
    moved = travelling.request()
    stage.send("at another host", moved, host="other.example")


def to_globex(stage: Stage) -> None:
    """What Globex receives when Acme calls it, in each dialect, and what comes of its answers."""
    chat = stage.chat
    chat("a call by its address", "@echo@globex.example")
    chat("the same again, known by now", "@echo@globex.example")
    chat("the default agent by its identity", "agent://globex.example", "good day")
    chat("an agent by its identity", "agent://echo.globex.example")
    chat("within a run", "@told@globex.example", "x", (RUN, "far"), (TURN, "near"), (DEPTH, "1"))
    chat(
        "the same turn again",
        "@told@globex.example",
        "x",
        (RUN, "far"),
        (TURN, "near"),
        (DEPTH, "1"),
    )
    chat(
        "with its parent",
        "@told@globex.example",
        "x",
        (RUN, "far"),
        (TURN, "below"),
        (PARENT, "near"),
        (DEPTH, "1"),
    )
    chat("a stream", "@words@globex.example", "one two", body=USAGE)
    chat("a price", "@paid@globex.example")
    chat("a price too high", "@dear@globex.example")
    chat("a payer that may travel", "@paid@globex.example", token="roaming")
    chat("a payer that has nothing", "@paid@globex.example", token="penniless")
    chat("an agent that fails", "@broken@globex.example")
    chat("an agent that fails in its stream", "@half@globex.example", body={"stream": True})
    chat("an agent that fails after it has spent", "@spends@globex.example")
    chat("an agent that is not there", "@nobody@globex.example")
    chat("the last hop", "@told@globex.example", "x", (DEPTH, "2"), (RUN, "last"))
    chat("one hop too many, here", "@told@globex.example", "x", (DEPTH, "3"), (RUN, "over"))
    chat("there and back", "onward", "@onward@globex.example @told@acme.example x", (RUN, "back"))
    chat(
        "there and back by its own name",
        "onward",
        "@onward@globex.example onward told x",
        (RUN, "inside"),
    )
    chat("an agent for peers", "@private@globex.example")
    skill = {"carnet": {"skill": "add", "payload": {"a": 2, "b": 3}}}
    chat("a skill", "@clerk@globex.example", body=skill)
    chat(
        "a skill, streamed",
        "@clerk@globex.example",
        body={"carnet": {"skill": "recite", "payload": {"lines": ["a"]}}, **USAGE},
    )
    chat(
        "a skill that does not fit",
        "@clerk@globex.example",
        body={"carnet": {"skill": "add", "payload": {"a": "x"}}},
    )
    chat(
        "an agent of ours that asks a peer for a skill",
        "clerk",
        body={
            "carnet": {"skill": "pass", "payload": {"to": "@clerk@globex.example", "skill": "tell"}}
        },
    )
    chat("by a token of theirs", "desk")
    chat("by a token of theirs, a skill", "desk", body=skill)
    chat("by a token of theirs, the payer's credential", "desk", token="roaming")
    chat("by a token of theirs, streamed", "desk", body=USAGE)
    chat("signed as SAMVAD", "clerk_there", "good day")
    chat("signed as SAMVAD, streamed", "clerk_there", body={"stream": True})
    chat("signed as SAMVAD, a skill", "clerk_there", body=skill)
    chat(
        "signed as SAMVAD, a skill for tasks",
        "clerk_there",
        body={"carnet": {"skill": "fails", "payload": {}}},
    )
    chat("from Globex by SAMVAD", "@echo@acme.example", to="globex", token="globex")
    chat(
        "from Globex by SAMVAD, streamed",
        "@words@acme.example",
        "one two",
        to="globex",
        token="globex",
        body={"stream": True},
    )
    chat("from Globex at a price", "@paid@acme.example", to="globex", token="globex")
    chat("from Globex to one that fails", "@broken@acme.example", to="globex", token="globex")
    chat("from Globex to nobody", "@nobody@acme.example", to="globex", token="globex")
    stage.get("a run that went far", "/runs/far")
    stage.get("the events of a run that went far", "/runs/far/events")
    stage.get("the same run at Globex", "/runs/far", to="globex", token="globex")
    stage.get("a run that came back", "/runs/back", token="overseer")
    signing = Signing(stage, "onward")
    signing.ask(
        "a signed call that goes on signed", "clerk_there", skill="add", payload={"a": 1, "b": 2}
    )
    signing.ask("a signed call that goes on by a token", "desk", payload={"text": "far"})
    signing.ask(
        "a signed stream that goes on signed",
        "clerk_there",
        path="/agent/stream",
        skill="recite",
        payload={"lines": ["a", "b"]},
    )
    signing.ask(
        "a signed call of a stranger to a peer",
        "relay",
        sender=BOB,
        payload={"text": "@echo@globex.example hi"},
    )


def elsewhere(stage: Stage) -> None:
    """Models, gateways of another make and an agent of an SDK: what they receive, what they do."""
    chat = stage.chat
    chat("a model", "model")
    chat("a model, streamed", "model", body={"stream": True})
    chat("a model, streamed with its usage", "model", body=USAGE)
    chat(
        "a model by its own name",
        "plain_model",
        body={"temperature": 0.5, "seed": 7, "user": "alice"},
    )
    tools = [
        {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    ]
    chat("a model with tools", "tooled", body={"tools": tools, "tool_choice": "auto"})
    chat("a model with tools, streamed", "tooled", body={"tools": tools, **USAGE})
    result = [
        {"role": "user", "content": "look it up"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look_up", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
    ]
    stage.post(
        "the result of a tool", CHAT, {"model": "tooled", "messages": result, "tools": tools}
    )
    parts = [
        {"type": "text", "text": "what is it"},
        {"type": "image_url", "image_url": {"url": "https://x.example/i.png"}},
    ]
    stage.post(
        "an image", CHAT, {"model": "plain_model", "messages": [{"role": "user", "content": parts}]}
    )
    chat("a model in a run", "model", "x", (RUN, "modelled"), (TURN, "t"), (DEPTH, "2"))
    chat(
        "a model that a turn has asked, again",
        "model",
        "x",
        (RUN, "modelled"),
        (TURN, "t"),
        (DEPTH, "2"),
    )
    for name in (
        "broken",
        "busy",
        "denied",
        "nonsense",
        "html",
        "cut",
        "mute",
        "down",
        "retried",
        "moved",
        "absent",
    ):
        chat(f"a model that is {name}", f"up_{name}")
    chat("a stream that is cut", "up_cut", body={"stream": True})
    chat("a stream that does not begin", "up_broken", body={"stream": True})
    for _ in range(4):
        stage.quietly(
            stage.plain(
                "POST",
                CHAT,
                body={"model": "up_mute", "messages": [{"role": "user", "content": "x"}]},
            )
        )
    chat("a model that is left alone", "up_mute")
    chat("a gateway", "afar")
    chat("a gateway, streamed", "afar", body=USAGE)
    chat("a gateway in a run", "afar", "x", (RUN, "afar"), (TURN, "t"), (PARENT, "p"), (DEPTH, "1"))
    chat("a gateway, with the payer's credential", "afar", token="roaming")
    chat("a gateway that may not have it", "afar_closed", token="roaming")
    chat("a gateway that takes too much", "afar_dear")
    chat("a gateway that refuses the depth", "afar_deep")
    chat("a gateway that has no such agent", "afar_deeper")
    chat("a gateway one hop too deep", "afar", "x", (DEPTH, "3"))
    chat(
        "a skill of a gateway that is no Carnet",
        "afar",
        body={"carnet": {"skill": "add", "payload": {}}},
    )
    chat("a peer with a token", "@critic@listed.example", "x", (RUN, "listed"), (TURN, "t"))
    chat(
        "a payer's credential for a peer that is not listed for it",
        "@critic@listed.example",
        token="roaming",
    )
    chat("a peer that cannot be reached", "@echo@gone.example")
    chat("an agent of an SDK", "sdk")
    chat("an agent of an SDK, streamed", "sdk", body={"stream": True})
    chat("an agent of an SDK that is busy", "sdk", "refuse")
    chat(
        "an agent of an SDK by its identity",
        "agent://sdk.example",
        "x",
        (RUN, "sdk"),
        (TURN, "t"),
        (DEPTH, "1"),
    )
    chat("an agent of an SDK that is not there", "sdk_absent")
    stage.get("what is left alone", "/readyz", token="overseer")
    stage.get("a run with a model in it", "/runs/modelled")
    stage.get("a run with a gateway in it", "/runs/afar")
