"""What leaves signed: read by whoever receives it, and saying no more than the call was given."""

from typing import Any

import pytest

from carnet.core.people.delegation import narrower
from carnet.core.people.identity import Account, Secret
from carnet.core.people.proof import Proof, Spending
from carnet.errors import DepthExceeded
from carnet.ports.world.http_client import Outbound
from carnet.runtime.peers.signing import Signing
from carnet.testing.clock import FakeClock, FakeIds
from carnet.wire import travel
from carnet.wire.crypto import ed25519, signatures
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from tests.runtime.scene import CARNET, make_call

SEED = bytes(range(32))
PUBLIC = ed25519.public_of(SEED)
NOW = 1_800_000_000


class OneKey:
    """A key that signs."""

    kid = "k-1"
    public = PUBLIC

    def sign(self, message: bytes) -> bytes:
        return ed25519.sign(SEED, message)


class Keys:
    """As much of the port as signing needs."""

    def signer(self) -> OneKey:
        return OneKey()


def signing(clock: FakeClock | None = None) -> Signing:
    keys: Any = Keys()
    clock = clock or FakeClock(wall_us=NOW * 1_000_000)
    return Signing(keys=keys, domain="a.example", clock=clock, ids=FakeIds())


def outbound(url: str = "https://b.example/v1/chat", **more: Any) -> Outbound:
    headers = {"content-type": "application/json", "x-tangle-runid": "run_1"}
    return Outbound(url=url, body=b"{}", headers=headers, **more)


def received(sent: Outbound, *, authority: str, path: str, query: str | None = None) -> Any:
    plain = {**sent.headers, **{name: value.reveal() for name, value in sent.secrets.items()}}
    return signatures.Request(
        method="POST",
        authority=authority,
        path=path,
        query=query,
        headers=Headers([(name.encode(), value.encode()) for name, value in plain.items()]),
    )


def proof(request: signatures.Request) -> Proof:
    found = travel.read_proof(request, b"{}", STAMPS)
    assert found is not None
    assert ed25519.holds(PUBLIC, found.bases[0], found.signature)
    return found


def test_a_signed_call_is_read_by_whoever_receives_it() -> None:
    sent = signing().sign_carnet(
        outbound(),
        make_call(path=("@x@a.example",)).carnet,
        audience="b.example",
        payer=Account("a.example", "alice"),
        budget=Spending(money=5, currency="credits"),
    )
    found = proof(received(sent, authority="b.example", path="/v1/chat"))
    document = found.document
    assert document is not None
    assert ed25519.holds(PUBLIC, document.signed, document.signature)
    assert (document.issuer, document.audience, document.expires) == (
        *("a.example", "b.example"),
        NOW + 60,
    )
    assert (document.run, document.turn, document.depth, document.last_depth) == (
        *("run_1", "run_1.t0.critic"),
        *(1, 3),
    )
    assert (document.path, document.payer) == (("@x@a.example",), Account("a.example", "alice"))
    assert document.budget == Spending(money=5, currency="credits")


@pytest.mark.parametrize(
    ("url", "authority", "path", "query"),
    [
        ("https://b.example:443/x", "b.example", "/x", None),
        ("http://b.example:80", "b.example", "/", None),
        ("http://127.0.0.1:8700/x?a=b", "127.0.0.1:8700", "/x", "a=b"),
        ("http://[::1]:8700/x", "[::1]:8700", "/x", None),
    ],
)
def test_what_is_signed_is_the_url_as_it_arrives(
    url: str, authority: str, path: str, query: str | None
) -> None:
    sent = signing().sign_carnet(outbound(url), CARNET, audience="b.example")
    proof(received(sent, authority=authority, path=path, query=query))


def test_a_credential_that_is_forwarded_is_covered_and_stays_a_secret() -> None:
    secret = {"x-tangle-forwarded-authorization": Secret("Bearer sk-tan-1")}
    sent = signing().sign_carnet(outbound(secrets=secret), CARNET, audience="b.example")
    proof(received(sent, authority="b.example", path="/v1/chat"))
    assert "sk-tan-1" not in str(sent)
    assert '"x-tangle-forwarded-authorization"' in sent.headers["signature-input"]


def test_every_attempt_is_a_request_of_its_own() -> None:
    sign = signing()
    sent = [sign.sign_carnet(outbound(), CARNET, audience="b.example") for _ in range(2)]
    assert sent[0].headers["signature-input"] != sent[1].headers["signature-input"]


def test_a_deadline_is_told_by_the_clock_that_both_sides_have() -> None:
    clock = FakeClock(wall_us=NOW * 1_000_000)
    clock.jump(-1000)  # somebody sets the clock back; what never jumps does not notice
    carnet = make_call(deadline=NOW + 2.5).carnet
    sent = signing(clock).sign_carnet(outbound(), carnet, audience="b.example")
    assert travel.read(sent.headers["carnet"]).deadline_ms == (NOW - 1000) * 1000 + 2500


def test_a_path_that_no_document_can_carry_ends_the_call_before_it_leaves() -> None:
    carnet = make_call(path=("@x@a.example",) * 33).carnet
    with pytest.raises(DepthExceeded):
        signing().sign_carnet(outbound(), carnet, audience="b.example")


def test_the_form_of_the_seed_covers_three_components_and_ends_with_a_newline() -> None:
    sent = signing().sign_samvad(outbound("https://b.example/agents/x/agent/m"), path="/agent/m")
    text = f'("@method" "@path" "content-digest");keyid="k-1";alg="ed25519";created={NOW}'
    assert sent.headers["signature-input"] == f"sig1={text}"
    request = received(sent, authority="b.example", path="/agents/x/agent/m")
    presented = signatures.read(request.headers)
    base = signatures.base(presented, request, path="/agent/m", newline=True)
    assert base.endswith(b"\n")
    assert ed25519.holds(PUBLIC, base, presented.signature)


@pytest.mark.parametrize(
    ("left", "wanted", "narrow"),
    [
        (None, None, None),
        (None, Spending(money=5, currency="c"), Spending(money=5, currency="c")),
        (Spending(calls=2), None, Spending(calls=2)),
        (
            Spending(money=3, currency="c", calls=2),
            Spending(money=5, currency="c"),
            Spending(money=3, currency="c", calls=2),
        ),
        (
            Spending(calls=2),
            Spending(money=5, currency="c"),
            Spending(money=5, currency="c", calls=2),
        ),
        (
            Spending(money=9, currency="other", tokens=1),
            Spending(money=5, currency="c", tokens=4),
            Spending(money=0, currency="other", tokens=1),  # nobody knows what it is worth here
        ),
    ],
)
def test_of_two_budgets_the_smaller_counts(
    left: Spending | None, wanted: Spending | None, narrow: Spending | None
) -> None:
    assert narrower(left, wanted) == narrow
