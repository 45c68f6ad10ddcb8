"""What the `samvad` package says and does, asked of the package itself and written beside this.

`python -m tests.vectors.samvad_sdk` writes samvad_sdk.json anew. The file is kept so that a reader
sees what was said, and a test asks the package again: another version that says something else is
noticed. Keys, times and bodies are our own; each fact is an input and what the package made of it.
"""

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import samvad
import samvad.delegation
import samvad.nonce_store
from nacl.signing import SigningKey
from samvad.card import build_agent_card
from samvad.errors import ErrorCode, SamvadError
from samvad.injection_scanner import scan_object_for_injection, wrap_with_content_boundary
from samvad.rate_limiter import RateLimiter
from samvad.server import _is_private_host, status_code_for
from samvad.signing import _build_signature_base
from samvad.types import PublicKey, RateLimit, SkillDef

from tests.support.signing.signed import now
from tests.vectors import samvad_asked as asked

KEPT = Path(__file__).with_name("samvad_sdk.json")

Case = tuple[Any, Any]  # an input, and what was made of it
Fact = dict[str, Any]


def key_of(seed: bytes) -> dict[str, str]:
    """A pair of keys as the package takes them."""
    public = bytes(SigningKey(seed).verify_key)
    return {"seed_b64": b64encode(seed).decode(), "public_b64": b64encode(public).decode()}


OWN, OTHER = key_of(bytes(range(32))), key_of(bytes(range(32, 64)))


@contextmanager
def clock_of(module: Any, instant: float) -> Iterator[None]:
    """A module of the package reads that time."""
    real = module.time
    module.time = SimpleNamespace(time=lambda: instant)
    try:
        yield
    finally:
        module.time = real


# --------------------------------------------------------------------------------------- bytes


def signed(method: str, path: str, body: str, kid: str, created: int) -> dict[str, str]:
    """The headers that the package puts on a request."""
    headers = {"content-digest": samvad.content_digest(body.encode())}
    made = samvad.sign_request(method, path, headers, OWN["seed_b64"], kid, created)
    return {**headers, **made}


def signing() -> Iterator[Case]:
    for method, path, body, kid, created in asked.SIGNED:
        headers = signed(method, path, body, kid, created)
        digest = headers.pop("content-digest")
        base, _ = _build_signature_base(method, path, {"content-digest": digest}, created, kid)
        given = {"method": method, "path": path, "body": body, "kid": kid, "created": created}
        yield {**OWN, **given}, {"content_digest": digest, "signature_base": base, **headers}


def verifying() -> Iterator[Case]:
    """One request that was signed, and the same with one thing altered."""
    plain = ("POST", "/agent/message")
    headers = signed(*plain, "{}", "alice", asked.INSTANT)
    for change, alter in asked.ALTERED.items():
        method, path, sent = alter(*plain, headers)
        given = {"change": change, "method": method, "path": path, "headers": sent}
        public = OWN["public_b64"]
        yield {**given, "public_b64": public}, samvad.verify_request(method, path, sent, public)


# ------------------------------------------------------------------------------- what is said


def cards() -> Iterator[Case]:
    skill = SkillDef(
        id="chat",
        name="chat",
        description="Talks.",
        inputSchema={},
        outputSchema={},
        modes=["sync"],
        trust="public",
    )
    names = ("id", "url", "endpoints", "auth", "protocolVersion", "cardTTL")
    for url in asked.URLS:
        card = build_agent_card(
            name="A",
            version="1",
            description="d",
            url=url,
            specializations=[],
            models=[],
            skills=[skill],
            public_keys=[PublicKey(kid="agent", key=OWN["public_b64"], active=True)],
            rate_limit=RateLimit(requestsPerMinute=60, requestsPerSender=20),
        ).model_dump(by_alias=True)
        yield {"url": url}, {name: card[name] for name in names}


def statuses() -> Iterator[Case]:
    for code in (*(code.value for code in ErrorCode), "SOMETHING_ELSE"):
        yield code, status_code_for(code)


# ---------------------------------------------------------------------------- what is counted


async def nonces() -> list[Case]:
    """One store is asked about all of them, one after another, at one moment."""
    store = samvad.InMemoryNonceStore()
    with clock_of(samvad.nonce_store, asked.INSTANT):
        return [
            (
                {"sender": sender, "nonce": nonce, "age_s": age},
                await store.check(sender, nonce, asked.INSTANT - age),
            )
            for sender, nonce, age in asked.NONCES
        ]


async def nonce_steps() -> list[Case]:
    store, taken = samvad.InMemoryNonceStore(), []
    with clock_of(samvad.nonce_store, asked.INSTANT):
        for step in asked.NONCE_STEPS:
            if step == "check":
                taken.append(await store.check("a", "n1", asked.INSTANT))
            elif step == "commit":
                await store.commit("a", "n1", asked.INSTANT)
            else:
                await store.rollback("a", "n1")
    return [(list(asked.NONCE_STEPS), taken)]


def rates() -> Iterator[Case]:
    limiter = RateLimiter(requests_per_minute=3, requests_per_sender=2)
    calls = list("aaabc")
    yield (
        {"perMinute": 3, "perSender": 2, "calls": calls},
        [[name, limiter.check_request(name)] for name in calls],
    )
    limiter = RateLimiter(9, 9, tokens_per_sender_per_day=1000)
    limiter.record_tokens("a", 1000)
    yield {"tokensPerSenderPerDay": 1000, "used": 1000}, code_of(lambda: limiter.check("a"))


# -------------------------------------------------------------------------------- delegation


def code_of(action: Any) -> str:
    """The code of the package's refusal, or that there was none."""
    try:
        action()
    except SamvadError as error:
        return str(ErrorCode(error.code).value)
    return "ok"


def tokens() -> Iterator[Case]:
    granted = {"iss": "agent://a.com", "sub": "agent://b.com", "scope": ["review-code"]}
    with clock_of(samvad.delegation, asked.INSTANT):
        token = samvad.issue_token(
            **granted, max_depth=2, private_key_b64=OWN["seed_b64"], kid="key-1", ttl_seconds=300
        )
    times = {"kid": "key-1", "iat": asked.INSTANT, "ttl": 300}
    yield (
        {"seed_b64": OWN["seed_b64"], **granted, "maxDepth": 2, **times},
        {"jwt": token, "public_b64": OWN["public_b64"]},
    )


def judged_tokens() -> Iterator[Case]:
    """Tokens of any library, as the package judges them: `life` is in seconds from now."""
    for case, changed in asked.CLAIMS.items():
        claims = {"scope": ["chat"], "maxDepth": 2, **changed}
        issued, life = int(now()), claims.pop("life", 900)
        whole = {"iss": "agent://a.com", "sub": "agent://b.com", **claims}
        seed = OTHER["seed_b64"] if case == "wrong key" else OWN["seed_b64"]
        token = jwt.encode(
            {**whole, "iat": issued - 60, "exp": issued + life},
            samvad.delegation._private_key_from_b64(seed),  # noqa: SLF001  the package has no other
            algorithm="EdDSA",
        )
        verdict = code_of(
            lambda token=token: samvad.verify_token(token, issuer_public_key_b64=OWN["public_b64"])
        )
        yield {"case": case, "claims": changed}, verdict


def handed_on() -> Iterator[Case]:
    """Of a's token for b, the one that b makes for c."""
    for hops in (3, 2, 1):
        parent = samvad.issue_token(
            iss="agent://a.com",
            sub="agent://b.com",
            scope=["s", "t"],
            max_depth=hops,
            private_key_b64=OWN["seed_b64"],
            kid="k1",
        )
        made: list[str] = []

        def chain(parent: str = parent, made: list[str] = made) -> None:
            made.append(
                samvad.chain_token(
                    parent,
                    new_sub="agent://c.com",
                    new_iss="agent://b.com",
                    private_key_b64=OTHER["seed_b64"],
                    kid="k2",
                    issuer_public_key_b64=OWN["public_b64"],
                )
            )

        verdict: Any = code_of(chain)
        with suppress(IndexError):
            verdict = jwt.decode(made[0], options={"verify_signature": False})
            verdict["exp-iat"] = verdict.pop("exp") - verdict.pop("iat")
        yield {"maxDepth": hops}, verdict


# ------------------------------------------------------------------------------- all of them


def areas() -> Iterator[tuple[str, list[Case]]]:
    """Every area with what was asked there."""
    yield "canonical_json", [(one, samvad.canonical_json(one)) for one in asked.VALUES]
    yield "content_digest", [(one, samvad.content_digest(one.encode())) for one in asked.BODIES]
    yield "sign", list(signing())
    yield "verify", list(verifying())
    yield "injection", [(one, scan_object_for_injection(one)) for one in asked.PAYLOADS]
    yield "boundary", [(one, wrap_with_content_boundary(one)) for one in asked.WRAPPED]
    yield "private_host", [(one, _is_private_host(one)) for one in asked.HOSTS]
    yield "status", list(statuses())
    yield "delegation", list(tokens())
    yield "delegation_verify", list(judged_tokens())
    yield "delegation_chain", list(handed_on())
    yield "nonce_check", asyncio.run(nonces())
    yield "nonce_seq", asyncio.run(nonce_steps())
    yield "rate", list(rates())
    yield "card", list(cards())


def facts() -> list[Fact]:
    """What the package says today, numbered within its area."""
    return [
        {"id": f"{area}-{number:02}", "area": area, "input": asked_for, "expected": expected}
        for area, cases in areas()
        for number, (asked_for, expected) in enumerate(cases, 1)
    ]


def kept() -> list[Fact]:
    """What it said when the file was written."""
    found: list[Fact] = json.loads(KEPT.read_text())
    return found


def written(found: list[Fact]) -> str:
    """A fact a line, so that a change of one is a line of a difference."""
    lines = [json.dumps(fact, ensure_ascii=False) for fact in found]
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    KEPT.write_text(written(facts()))
