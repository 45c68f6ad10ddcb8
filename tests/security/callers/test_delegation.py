"""Delegations against a running gateway: nobody does more than was granted; bad links are named.

A28 to A32. What is refused leaves no trace: nothing runs, nothing is billed, nothing is fetched.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import samvad.delegation as sdk_tokens

from carnet import errors
from carnet.testing.wait import until
from tests.security.support.cards import CardHost
from tests.security.support.scene import Scene
from tests.security.support.signing import AUTH, CANARY, SignedEdge
from tests.support.http import Reply
from tests.support.signing.delegations import ours, sdk
from tests.support.signing.forged import (
    UNREADABLE,
    UNTIMELY,
    Forgery,
    Grant,
    altered,
    forged_signature,
)
from tests.support.signing.signed import Sender, b64, now, result

EXCEEDED = (400, "DELEGATION_EXCEEDED")
SEEDS = {name: bytes([number]) * 32 for number, name in enumerate(("carol", "dave"), 1)}


def member(name: str) -> Sender:
    return Sender(f"agent://client-{name}", "k1", SEEDS[name])


@pytest.fixture(scope="module")
def carol(scene: Scene, edge: SignedEdge) -> Sender:
    return admitted(scene, edge, member("carol"))


@pytest.fixture(scope="module")
def dave(scene: Scene, edge: SignedEdge) -> Sender:
    return admitted(scene, edge, member("dave"))


def admitted(scene: Scene, edge: SignedEdge, sender: Sender) -> Sender:
    scene.acme.carnet("peers", "add", sender.identity, "--key", sender.public)
    until(lambda: edge.send(edge.message(sender)).status == 200)
    return sender


@contextmanager
def nobody_asked(cards: CardHost) -> Iterator[None]:
    """No card is fetched meanwhile."""
    before = Counter(cards.asked)
    yield
    assert cards.asked == before


def link_named(reply: Reply) -> int:
    """The link that a refusal names."""
    words = str(reply.json["error"]["message"]).split()
    assert words[0] == "Link", words
    return int(words[1])


# ------------------------------------------------------------------------------ A28


@pytest.mark.parametrize("forge", [*UNREADABLE.values(), *UNTIMELY.values(), forged_signature])
def test_the_list_of_attacks_is_refused(
    edge: SignedEdge, cards: CardHost, alice: Sender, bob: Sender, forge: Forgery
) -> None:
    """A28: each is made by an issuer that we know, for whoever presents it."""
    token = forge(Grant(alice, bob.identity, edge.identity))
    with nobody_asked(cards):
        reply = edge.refuses(
            edge.message(bob, delegationToken=token), errors.DelegationInvalid, secret=token
        )
    assert link_named(reply) == 1


def test_an_issuer_that_nobody_knows_is_not_fetched(
    edge: SignedEdge, cards: CardHost, bob: Sender
) -> None:
    """A28: not from its host, nor from where its header points."""
    stranger = Sender("agent://attacker.example", "https://127.0.0.1:9/keys.json".replace("/", "."))
    with nobody_asked(cards):
        reply = edge.refuses(
            edge.message(bob, delegationToken=sdk(stranger, bob.identity)),
            errors.DelegationInvalid,
        )
    assert "carnet peers add agent://attacker.example --key" in reply.json["error"]["message"]


def test_genuine_tokens_are_taken(
    edge: SignedEdge, alice: Sender, bob: Sender, neighbour: Sender
) -> None:
    """So that what is refused above is refused for its fault; a peer's key is learned."""
    for token in (
        ours(alice, bob.identity, edge.identity),
        sdk(alice, bob.identity),
        sdk(alice, bob.identity, scope="chat other", header={"kid": None, "typ": None}),
        sdk(bob, bob.identity, scope=["*"]),
        sdk(neighbour, bob.identity, aud=edge.identity),
    ):
        edge.accepts(edge.message(bob, delegationToken=token))


def test_the_type_is_of_any_case_and_the_audience_may_be_a_list_of_one(
    edge: SignedEdge, alice: Sender, bob: Sender
) -> None:
    """R13: RFC 7515, 4.1.9, and RFC 7519, 4.1.3; libraries write either."""
    for token in (
        sdk(alice, bob.identity, header={"typ": "jwt"}),
        sdk(alice, bob.identity, header={"typ": "Jwt"}, aud=[edge.identity]),
        ours(alice, bob.identity, edge.identity, header={"typ": "Carnet-Delegation+JWT"}),
        ours(alice, bob.identity, edge.identity, aud=[edge.identity]),
    ):
        edge.accepts(edge.message(bob, delegationToken=token))
    for elsewhere in (["agent://globex.example"], [edge.identity, "agent://globex.example"]):
        token = sdk(alice, bob.identity, aud=elsewhere)
        edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationInvalid)


# ------------------------------------------------------------------------------ A29


def test_a_token_for_another_agent_or_of_somebody_else_is_refused(
    edge: SignedEdge, alice: Sender, bob: Sender, mallory: Sender
) -> None:
    """A29."""
    for token in (
        ours(alice, bob.identity, "agent://globex.example"),
        ours(alice, bob.identity, f"agent://desk.{edge.gateway.domain}"),
        ours(alice, alice.identity, edge.identity),
        sdk(alice, alice.identity),
        sdk(alice, mallory.identity),
        sdk(mallory, bob.identity),
    ):
        edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationInvalid)


# ------------------------------------------------------------------------------ A30

BUDGET = {"money": "1", "currency": "credits", "calls": 5, "tokens": 500}

WIDER: list[tuple[str, dict[str, Any]]] = [
    ("scope", {"scope": ["chat", "pay"]}),
    ("scope", {"scope": ["*"]}),
    ("exp", {"exp": 3000}),  # seconds from when the test runs, which may be long after this
    ("maxDepth", {"maxDepth": 9}),
    ("once", {"once": False}),
    ("aud", {"aud": "agent://globex.example"}),
    ("bud.money", {"bud": {**BUDGET, "money": "1.000001"}}),
    ("bud.money", {"bud": {**BUDGET, "currency": "eur"}}),
    ("bud.calls", {"bud": {**BUDGET, "calls": 6}}),
    ("bud.tokens", {"bud": {**BUDGET, "tokens": 501}}),
    ("bud.money", {"bud": ...}),
]


def from_now(claims: dict[str, Any]) -> dict[str, Any]:
    """The same claims, with the second that an end which is told in seconds falls on."""
    return {**claims, "exp": int(now()) + claims["exp"]} if "exp" in claims else claims


@pytest.mark.parametrize(("claim", "wider"), WIDER)
def test_a_child_that_is_wider_is_refused_by_the_name_of_the_claim(
    edge: SignedEdge, alice: Sender, bob: Sender, carol: Sender, claim: str, wider: dict[str, Any]
) -> None:
    """A30."""
    granted: dict[str, Any] = {"once": True, "bud": BUDGET, "exp": int(now()) + 2000}
    first = ours(alice, bob.identity, edge.identity, **granted)
    narrow = {**granted, "parent": first, "maxDepth": 1}
    second = ours(bob, carol.identity, edge.identity, **{**narrow, **from_now(wider)})
    if claim == "aud":  # then it would be for another agent to say
        second = ours(
            carol, carol.identity, edge.identity, **narrow | {"parent": second, "maxDepth": 0}
        )
    reply = edge.refuses(
        edge.message(carol, delegationToken=second), errors.DelegationWidened, EXCEEDED
    )
    assert f"Link 2 of the delegation widens '{claim}'" in reply.json["error"]["message"]


# ------------------------------------------------------------------------------ A31


def test_a_chain_that_is_too_long_or_comes_back_is_refused(
    edge: SignedEdge, alice: Sender, bob: Sender, carol: Sender
) -> None:
    """A31."""
    far: dict[str, Any] = {"sub": "agent://a"}
    for host in "bcdefg":
        far = {"sub": f"agent://{host}", "act": far}
    token = sdk(alice, bob.identity, act=far)
    edge.refuses(edge.message(bob, delegationToken=token), errors.DepthExceeded, EXCEEDED)
    for depth in (0, -1):
        token = sdk(alice, bob.identity, maxDepth=depth)
        edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationExceeded, EXCEEDED)
    here = {"sub": edge.identity}
    twice = ours(alice, bob.identity, edge.identity, maxDepth=3)
    twice = ours(bob, alice.identity, edge.identity, parent=twice, maxDepth=2)
    twice = ours(alice, carol.identity, edge.identity, parent=twice, maxDepth=1)
    for sender, token in ((bob, sdk(alice, bob.identity, act=here)), (carol, twice)):
        edge.refuses(edge.message(sender, delegationToken=token), errors.LoopDetected, EXCEEDED)


def test_a_skill_outside_of_the_scope_is_refused(
    edge: SignedEdge, alice: Sender, bob: Sender
) -> None:
    for scope in ([], ["pay"], "pay order", "chatter"):
        token = sdk(alice, bob.identity, scope=scope)
        edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationExceeded, EXCEEDED)


def test_one_hop_is_one_call(edge: SignedEdge, alice: Sender, bob: Sender) -> None:
    """U10: an agent that is called with it may not call on."""
    to = f"agent://deputy.{edge.gateway.domain}"
    request = edge.message(
        bob,
        to,
        target="/agents/deputy/agent/message",
        payload={"text": "echo"},
        delegationToken=sdk(alice, bob.identity, maxDepth=1),
    )
    reply = edge.send(request)
    assert (reply.status, reply.headers["carnet-code"]) == (400, "delegation_exceeded")
    assert "a larger --depth" in reply.json["error"]["message"]


# ------------------------------------------------------------------------------ A32


def test_a_token_for_one_call_is_taken_once(edge: SignedEdge, alice: Sender, bob: Sender) -> None:
    """A32: a repeat of that very call is answered and runs nothing."""
    token = ours(alice, bob.identity, edge.identity, once=True)
    names = {"traceId": "trace-of-one-call", "spanId": "span-of-one-call"}
    edge.accepts(edge.message(bob, delegationToken=token, **names))
    reply = edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationReplayed)
    assert link_named(reply) == 1
    edge.accepts(edge.message(bob, delegationToken=token, **names))


def test_what_is_refused_for_another_reason_uses_nothing_up(
    edge: SignedEdge, alice: Sender, bob: Sender
) -> None:
    """A32."""
    token = ours(alice, bob.identity, edge.identity, once=True)
    request = edge.message(bob, delegationToken=token, skill="no-such-skill")
    edge.refuses(request, errors.SkillNotFound, (404, "SKILL_NOT_FOUND"))
    edge.accepts(edge.message(bob, delegationToken=token))


# ------------------------------------------------------------------------------ a chain of three


class Chain:
    """What alice granted bob, bob passed on to carol, and carol to dave, who presents it."""

    def __init__(
        self, edge: SignedEdge, alice: Sender, bob: Sender, carol: Sender, dave: Sender
    ) -> None:
        self.edge = edge
        self.people: tuple[Sender, ...] = (alice, bob, carol, dave)

    def token(self, changed: int = 0, order: tuple[int, ...] = (1, 2, 3), **more: Any) -> str:
        """The whole chain; the claims of the link that is `changed` are others."""
        text = ""
        for place, number in enumerate(order):
            issuer, subject = self.people[number - 1 : number + 1]
            claims: dict[str, Any] = {"maxDepth": 3 - place, "exp": int(now()) + 600 - place}
            if text:
                claims["parent"] = text
            if number == changed:
                claims |= more
            text = ours(issuer, subject.identity, self.edge.identity, **claims)
        return text

    def refused(
        self, token: str, why: type[errors.CarnetError], refusal: tuple[int, str] = AUTH
    ) -> int:
        """It is refused; the link that is named."""
        request = self.edge.message(self.people[3], delegationToken=token)
        return link_named(self.edge.refuses(request, why, refusal))


@pytest.fixture(scope="module")
def chain(edge: SignedEdge, alice: Sender, bob: Sender, carol: Sender, dave: Sender) -> Chain:
    return Chain(edge, alice, bob, carol, dave)


LINKS = (1, 2, 3)


def test_a_chain_of_three_is_taken(chain: Chain) -> None:
    chain.edge.accepts(chain.edge.message(chain.people[3], delegationToken=chain.token()))


@pytest.mark.parametrize("link", LINKS)
def test_a_forged_link_is_named(chain: Chain, link: int) -> None:
    """By somebody who signs under its issuer's name."""
    people = chain.people
    impostor = Sender(people[link - 1].identity)
    chain.people = tuple(impostor if n == link - 1 else one for n, one in enumerate(people))
    try:
        token = chain.token()
    finally:
        chain.people = people
    assert chain.refused(token, errors.DelegationInvalid) == link


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("change", [{"scope": ["*"]}, {"maxDepth": 9}, {"once": True}])
def test_a_link_that_was_changed_on_the_way_is_named(
    chain: Chain, link: int, change: dict[str, Any]
) -> None:
    """Also to grant less: what its issuer did not sign is not its issuer's."""
    edge, people = chain.edge, chain.people
    text = ""
    for number in LINKS:
        issuer, subject = people[number - 1 : number + 1]
        claims: dict[str, Any] = {"maxDepth": 4 - number, **({"parent": text} if text else {})}
        text = ours(issuer, subject.identity, edge.identity, **claims)
        text = altered(text, **change) if number == link else text
    assert chain.refused(text, errors.DelegationInvalid) == link


@pytest.mark.parametrize("link", [2, 3])
@pytest.mark.parametrize("wider", [{"scope": ["chat", "x"]}, {"exp": 5000}, {"maxDepth": 4}])
def test_a_widened_link_is_named(chain: Chain, link: int, wider: dict[str, Any]) -> None:
    token = chain.token(link, **from_now(wider))
    assert chain.refused(token, errors.DelegationWidened, EXCEEDED) == link


@pytest.mark.parametrize("link", LINKS)
def test_an_expired_link_is_named(chain: Chain, link: int) -> None:
    token = chain.token(link, iat=int(now()) - 100, exp=int(now()) - 1)
    assert chain.refused(token, errors.DelegationInvalid) == link


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_is_used_up_is_named(chain: Chain, link: int) -> None:
    """One use in all, however many chains its holder derives from it."""
    edge, people = chain.edge, chain.people
    text = ""
    tokens: list[str] = []
    for number in LINKS:
        issuer, subject = people[number - 1 : number + 1]
        claims: dict[str, Any] = {"maxDepth": 4 - number, "once": number >= link}
        above: dict[str, Any] = {"parent": text} if text else {}
        tokens = [
            ours(issuer, subject.identity, edge.identity, **claims, **above) for _ in range(2)
        ]
        text = tokens[0] if number != 3 else text
    first, second = tokens
    edge.accepts(edge.message(people[3], delegationToken=first))
    again = second if link < 3 else first
    assert chain.refused(again, errors.DelegationReplayed) == link


@pytest.mark.parametrize("order", [o for o in itertools.permutations(LINKS) if o != LINKS])
def test_links_in_another_order_are_refused(chain: Chain, order: tuple[int, ...]) -> None:
    """Each made anew by its own issuer: it is the order that is wrong."""
    token = chain.token(order=order)
    wrong = 3 if order[-1] != 3 else 2
    assert chain.refused(token, errors.DelegationInvalid) == wrong


def test_a_link_that_was_left_out_is_missed(chain: Chain) -> None:
    token = chain.token(order=(1, 3))
    assert chain.refused(token, errors.DelegationInvalid) == 2


# ------------------------------------------------------------------------------ the real SDK


def test_tokens_of_the_real_sdk_are_taken(edge: SignedEdge, carol: Sender, dave: Sender) -> None:
    """R13: issued, and chained."""
    keys = {name: b64(seed) for name, seed in SEEDS.items()}
    issued = sdk_tokens.issue_token(
        iss=carol.identity,
        sub=dave.identity,
        scope=["chat"],
        max_depth=2,
        private_key_b64=keys["carol"],
        kid="k1",
    )
    edge.accepts(edge.message(dave, delegationToken=issued))
    chained = sdk_tokens.chain_token(
        issued,
        new_sub=carol.identity,
        new_iss=dave.identity,
        private_key_b64=keys["dave"],
        kid="k1",
        issuer_public_key_b64=carol.public,
    )
    edge.accepts(edge.message(carol, delegationToken=chained))
    spare = sdk_tokens.issue_token(
        iss=carol.identity,
        sub=dave.identity,
        scope=["other"],
        max_depth=2,
        private_key_b64=keys["carol"],
        kid="k1",
    )
    edge.refuses(edge.message(dave, delegationToken=spare), errors.DelegationExceeded, EXCEEDED)


def test_a_token_that_the_operator_made_is_taken_where_it_says(
    scene: Scene, edge: SignedEdge, bob: Sender
) -> None:
    """What we granted comes home."""
    page = scene.acme.json(
        "tokens", "delegate", bob.identity, "--for", edge.identity, "--scope", "chat", "--once"
    )
    assert result(edge.send(edge.message(bob, delegationToken=page["token"]))) == {"text": CANARY}
    edge.refuses(edge.message(bob, delegationToken=page["token"]), errors.DelegationReplayed)


def test_a_key_that_is_ended_ends_what_it_signed(
    scene: Scene, edge: SignedEdge, bob: Sender
) -> None:
    """Also what was verified before, within seconds."""
    erin = Sender("agent://client-erin")
    scene.acme.carnet("peers", "add", erin.identity, "--key", erin.public)
    token = ours(erin, bob.identity, edge.identity)
    until(lambda: edge.send(edge.message(bob, delegationToken=token)).status == 200)
    scene.acme.carnet("peers", "revoke-key", erin.identity)
    until(lambda: edge.send(edge.message(bob, delegationToken=token)).status == 401)
    edge.refuses(edge.message(bob, delegationToken=token), errors.DelegationInvalid)
