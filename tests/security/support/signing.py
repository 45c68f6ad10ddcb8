"""Signed requests, genuine and forged, and what a refused one must leave as it was."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from carnet.errors import CarnetError
from tests.security.support.scene import Scene, nothing_done, seen
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, Signed, message, refusal, result

# The words of the dialect for what is refused.
AUTH = (401, "AUTH_FAILED")
REPLAY = (401, "REPLAY_DETECTED")
SHAPE = (400, "SCHEMA_INVALID")

CANARY = "canary.of.a.payload.41c7"

# Agents of acme that whoever signs may call, beside the default one.
PUBLIC = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{target}"\ntrust = "public"\n{more}'
    for name, target, more in (
        ("speaker", "words", ""),
        ("deputy", "relay", ""),
        ("vendor", "echo", 'price = "0.01"\n'),
    )
)

DESK_AGENTS = '[agents.desk]\nkind = "python"\ntarget = "agents:desk"\ntrust = "public"\n'

DESK = """

from dataclasses import dataclass
from typing import Any

desk = carnet.agent("desk")


@dataclass
class Order:
    dish: str
    seats: int = 1


@desk.skill("order", input=Order)
async def order(visit: carnet.Visit, order: Order) -> dict[str, Any]:
    note(visit)
    return {"dish": order.dish, "seats": order.seats}


@desk.skill("members", trust="authenticated")
async def members(visit: carnet.Visit) -> dict[str, Any]:
    note(visit)
    return {"who": str(visit.call.caller.principal)}


@desk.skill("friends", trust="trusted-peers", allowed_peers=["agent://client-bob"])
async def friends(visit: carnet.Visit) -> dict[str, Any]:
    note(visit)
    return {"welcome": True}


@desk.skill("nobody", trust="trusted-peers", allowed_peers=[])
async def nobody(visit: carnet.Visit) -> dict[str, Any]:
    note(visit)
    return {"welcome": False}
"""

# Organisations that publish their keys, honest and not: each behind its own path of one host.
WEAK = [f"weak-{number}" for number in range(14)]
BROKEN = ["huge", "slow", "packed", "moved", "refusing", "garbage", "cut", "twice"]
NEIGHBOUR = "neighbour"
PUBLISHERS = [NEIGHBOUR, "carol", "flooded", "revoked", "rotated", "down", *BROKEN, *WEAK]

Refusal = type[CarnetError]


class SignedEdge:
    """A gateway as signed callers see it, over one connection."""

    def __init__(self, scene: Scene, gateway: Organisation) -> None:
        self.scene = scene
        self.gateway = gateway
        self.identity = f"agent://{gateway.domain}"
        self.refused: Counter[str] = Counter()  # by their codes, as the log should tell them
        self._line = Line(gateway.port)

    def close(self) -> None:
        self._line.close()

    def message(self, sender: Sender, to: str | None = None, **more: Any) -> Signed:
        """A genuine request to this gateway's default agent, with a canary in it."""
        whole = {"payload": {"text": CANARY}, **more}
        return message(sender, self.identity if to is None else to, **whole)

    def send(self, request: Signed | bytes) -> Reply:
        return self._line.send(request)

    def send_alone(self, request: Signed) -> Reply:
        """On a connection of its own."""
        with Line(self.gateway.port) as line:
            return line.send(request)

    def untouched(self) -> AbstractContextManager[None]:
        """Nothing is done meanwhile, and no nonce is taken."""
        return nothing_done(self.scene)

    def accepts(self, request: Signed) -> Any:
        """It is answered with what it said."""
        found = result(self.send(request))
        assert found == {"text": CANARY}
        return found

    def refuses(
        self, request: Signed, why: Refusal, answer: tuple[int, str] = AUTH, *, secret: str = ""
    ) -> Reply:
        """It is refused as it should be; nothing is done, and nothing of it is said back."""
        with nothing_done(self.scene):
            reply = self.send(request)
        assert (*refusal(reply), reply.headers["carnet-code"]) == (*answer, why.code)
        says_nothing_back(reply, request, secret)
        self.refused[why.code] += 1
        return reply

    def refuses_but_then_accepts(
        self, forged: Signed, genuine: Signed, why: Refusal, answer: tuple[int, str] = AUTH
    ) -> None:
        """The forgery costs the genuine request nothing; that one is accepted once."""
        self.refuses(forged, why, answer)
        self.accepts(genuine)


def says_nothing_back(reply: Reply, request: Signed, secret: str = "") -> None:
    """Neither what the request said, nor what it was signed with, nor anything of the house."""
    answer = seen(reply)
    secrets = [CANARY, request.body.decode("utf-8", "replace")[:400], secret]
    secrets += [
        value for name, value in request.headers if name.startswith(("signature", "content-d"))
    ]
    for text in filter(None, secrets):
        assert text.encode() not in answer
    for word in (b"Traceback", b"/src/", b".py", b"sqlite", b"nacl"):
        assert word not in answer


@contextmanager
def edge_of(scene: Scene, gateway: Organisation) -> Iterator[SignedEdge]:
    opened = SignedEdge(scene, gateway)
    try:
        yield opened
    finally:
        opened.close()
