"""A SAMVAD agent on loopback that answers byte for byte what a test says."""

import json
from typing import Any

from carnet.core.people.identity import CHAT, Skill
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects import samvad
from tests.runtime.peer import SSE, Line, Peer, Request, head, reply

THEIRS = b"t" * 32

ADD = Skill(
    id="add",
    name="add",
    description="",
    input_schema={"required": ["a", "b"]},
    output_schema={},
    modes=("sync",),
)


def card(
    *, identity: str = "agent://globex.example", skills: tuple[Skill, ...] = (CHAT, ADD)
) -> bytes:
    return samvad.write_card(
        samvad.CardFacts(
            id=identity,
            name="globex",
            version="1",
            description="",
            url="https://elsewhere.example",
            skills=skills,
            keys=(samvad.CardKey("theirs", ed25519.public_of(THEIRS)),),
            requests_per_minute=60,
            requests_per_sender=60,
        )
    )


CARNET = travel.write_well_known(
    travel.WellKnown(
        domain="globex.example",
        version=1,
        keys=(travel.PublishedKey(kid="theirs", key=ed25519.public_of(THEIRS)),),
    ),
    kid="theirs",
    sign=lambda message: ed25519.sign(THEIRS, message),
)


def answer(**result: Any) -> bytes:
    body = {"traceId": "run_1", "spanId": "s", "status": "ok", "result": result}
    return reply(json.dumps(body).encode())


def refusal(status: int, code: str, headers: dict[str, str] | None = None) -> bytes:
    error = {
        "traceId": "",
        "spanId": "s",
        "status": "error",
        "error": {"code": code, "message": "x"},
    }
    body = json.dumps(error).encode()
    return reply(
        body, status=status, headers={"content-type": "application/json", **(headers or {})}
    )


def frames(*chunks: dict[str, Any], end: str = "\r\n") -> bytes:
    """A stream as the SDK's server writes it."""
    body = "".join(f"data: {json.dumps(one)}{end}{end}" for one in chunks).encode()
    return head(200, {**SSE, "content-length": str(len(body))}) + body


WELL = answer(text="well")


class Globex(Peer):
    """A SAMVAD agent that gives these answers, one after another; the last for ever."""

    def __init__(self, *answers: bytes, page: bytes | None = None, is_carnet: bool = False) -> None:
        super().__init__(self._play)
        self._answers = answers
        self._page = card() if page is None else page
        self._is_carnet = is_carnet

    @property
    def posts(self) -> list[Request]:
        return [request for request in self.requests if request.lines[0].startswith("POST")]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.posts]

    async def _play(self, line: Line) -> None:
        while True:
            asked = await line.request()
            path = asked.lines[0].split()[1]
            if path.endswith("/agent.json"):
                await line.say(reply(self._page) if self._page else reply(status=404))
            elif path.endswith("/carnet.json"):
                await line.say(reply(CARNET) if self._is_carnet else reply(status=404))
            else:
                await line.say(self._answers[min(len(self.posts), len(self._answers)) - 1])


def form_of(request: Request) -> str:
    return "carnet" if ';tag="carnet"' in request.headers["signature-input"] else "samvad"
