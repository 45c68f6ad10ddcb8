"""Signed claims, and a gate that can judge them: who signs, with what, for whom."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Ask, Claim
from carnet.core.chain.carnet import DepthLimits, Mark
from carnet.core.messages.events import Message
from carnet.core.people.address import Identities
from carnet.core.people.identity import CHAT, Secret
from carnet.core.people.proof import SECOND_US, Document, Proof
from carnet.guards.admission.gate import Gate
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.candidate import Candidate
from carnet.guards.limits import Concurrency
from carnet.guards.target.injection import Injection
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import Peer
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.keys import MemoryRing
from carnet.testing.trust import MemoryPeers
from carnet.testing.turns import MemoryTurns
from carnet.wire.crypto import ed25519
from tests.guards.scene import DOMAIN, REMOTE, Directory, known_tokens, target

SEED = bytes(range(32))
PUBLIC = ed25519.public_of(SEED)
BASE = b"what was signed"
NOW = FakeClock().wall_us()

STRANGER = "agent://stranger.example"
PEER = "agent://b.example"
ONE_LABEL = "agent://client-x"

INVITED = replace(CHAT, id="invited", trust="trusted-peers", allowed_peers=(ONE_LABEL,))
OPEN = replace(CHAT, id="open", trust="public", modes=("sync",))


def targets() -> tuple[Target, ...]:
    return (
        target("echo", default=True, trust="public", reentry=True),  # it calls itself
        target("desk", trust="authenticated", skills=(CHAT, OPEN), reentry=True),
        target("vault", trust="trusted-peers", skills=(CHAT, INVITED)),
        target("paid", price=200, trust="public"),
        target("raw", trust="public", injection_scan=False),
        target("bridge", trust="public", skills=(), is_remote=True),
        target("@critic@b.example", **REMOTE),
        target("dear", trust="trusted-peers", is_remote=True, most_cost=1000),
        target("told", price=50, is_remote=True, takes_budget=True, most_cost=700),
        target("counted", trust="public", tokens_per_day=1000, reentry=True),
    )


def identities() -> Identities:
    names = [found.name for found in targets()]
    return Identities(names, domain=DOMAIN, default="echo")


def proof(**fields: Any) -> Proof:
    given: dict[str, Any] = {
        "profile": "samvad",
        "sender": STRANGER,
        "keyid": "k1",
        "bases": (BASE,),
        "nonce": "nonce-00000001",
        "at": NOW,
        "recipient": f"agent://{DOMAIN}",
        **fields,
    }
    given.setdefault("signature", ed25519.sign(SEED, given["bases"][0]))
    return Proof(**given)


def document(**fields: Any) -> Document:
    made = Document(
        issuer="b.example",
        audience=DOMAIN,
        issued=NOW // SECOND_US,
        expires=NOW // SECOND_US + 60,
        run="conv_1",
        turn="conv_1.t0.echo",
        depth=1,
        last_depth=3,
        digest="sha-256=:x:",
        keyid="k1",
        signed=b"the document",
        signature=ed25519.sign(SEED, b"the document"),
    )
    return replace(made, **fields)


def travelled(**fields: Any) -> Proof:
    """A proof in our own profile, by the listed peer."""
    return proof(**{"profile": "carnet", "sender": PEER, "recipient": None, **fields})


def signed_claim(
    agent: str = "",
    *,
    skill: str | None = "chat",
    payload: dict[str, Any] | None = None,
    stream: bool = False,
    span: str = "span-1",
    forwarded: str | None = None,
    **fields: Any,
) -> Claim:
    """A claim of the default agent's, or of a named one's; `fields` are those of the proof."""
    given = {"text": "hi"} if payload is None else payload
    if agent:
        fields.setdefault("recipient", f"agent://{agent}.{DOMAIN}")
    shown = fields.pop("proof", None) or proof(**fields)
    return Claim(
        dialect="samvad",
        agent=agent,
        ask=Ask(messages=(Message("user", ("hi",)),), stream=stream, skill=skill, payload=given),
        digest=b"d",
        request=b"{}",
        marks=(Mark(stamp="samvad", run="trace-1", turn=span),),
        forwarded=None if forwarded is None else Secret(forwarded),
        proof=shown,
    )


def candidate(claim: Claim | None = None, now: int = NOW) -> Candidate:
    return Candidate(claim or signed_claim(), now)


class SignedScene:
    """A gate that knows one stranger's key, one peer's and one client's."""

    def __init__(
        self,
        *,
        sender_calls: int = 100,
        agent_calls: int = 1000,
        turns: MemoryTurns | None = None,
        agents: tuple[Target, ...] = (),
        **more: Any,
    ) -> None:
        """`agents` are there beside the usual; `more` is what signed claims are judged with."""
        self.clock = FakeClock()
        self.turns = turns or MemoryTurns()
        self.learns: Callable[[], None] | None = None
        self.tokens = known_tokens()
        self.peers = MemoryPeers(
            Peer(domain="b.example", url="http://127.0.0.1:1", may_forward=True, credit=300)
        )
        self.ring = MemoryRing()
        for sender in (STRANGER, PEER, ONE_LABEL):
            self.ring.pin(sender, "k1", PUBLIC)
        self.concurrency = Concurrency(per_caller=100, in_all=100)
        self.gate = Gate(
            GateParts(
                router=Directory(*targets(), *agents),
                tokens=self.tokens,
                peers=self.peers,
                clock=self.clock,
                ids=FakeIds(),
                domain=DOMAIN,
                depths=DepthLimits(),
            ),
            turns=self.turns,
            concurrency=self.concurrency,
            most_run_calls=100,
            look_again=self._look_again,
            by_proof=Signed(
                keys=self.ring,
                identities=identities(),
                schemas=CompiledSchemas(),
                scan=Injection(),
                currency="credits",
                sender_calls=sender_calls,
                agent_calls=agent_calls,
                **more,
            ),
        )

    async def _look_again(self) -> bool:
        if self.learns is None:
            return False
        self.learns()
        return True
