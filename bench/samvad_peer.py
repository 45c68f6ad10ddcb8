"""The message endpoint of the `samvad` package, and requests signed with its own functions."""

import itertools
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel
from samvad import (
    Agent,
    RateLimit,
    SkillContext,
    canonical_json,
    content_digest,
    sign_request,
)
from samvad.keys import Keypair, load_or_generate_keypair
from starlette.applications import Starlette

from bench.bodies import BODY_BYTES, filled, post, text

KEYS = "BENCH_SAMVAD_KEYS"  # the folder of both key pairs, for the server process
SENDER = "agent://client-bench"
RECIPIENT = "agent://127.0.0.1"
MARK = b'"status":"ok"'
_PATH = "/agent/message"
_ENVELOPE_BYTES = 150  # what the answer carries beside the text
_UNLIMITED = 10**9


class Message(BaseModel):
    """The payload and the result."""

    text: str


async def answer(payload: BaseModel, context: SkillContext) -> Message:  # noqa: ARG001 - its signature
    """2 KB at once."""
    return Message(text=text(BODY_BYTES - _ENVELOPE_BYTES))


def client_keys(folder: Path) -> Keypair:
    """The pair that the requests are signed with; made when there is none."""
    return load_or_generate_keypair(folder, "client")


def build() -> Starlette:
    """The application, with its own in-memory nonce store and a rate limit that never acts."""
    folder = Path(os.environ[KEYS])
    agent = Agent(
        name="bench",
        url="http://127.0.0.1",
        keys_dir=str(folder),
        rate_limit=RateLimit(requestsPerMinute=_UNLIMITED, requestsPerSender=_UNLIMITED),
    )
    agent.skill(
        name="say",
        description="answers at once",
        input_schema=Message,
        output_schema=Message,
        modes=["sync"],
        trust="public",
        handler=answer,
    )
    agent.trust_peer(SENDER, client_keys(folder).public_key_b64)
    app: Starlette = agent.build_app()
    return app


def signed_requests(folder: Path, count: int) -> list[bytes]:
    """Requests with a nonce of their own each, signed before anything is measured."""
    return list(itertools.islice(requests(client_keys(folder)), count))


def requests(
    keys: Keypair, *, to: str = RECIPIENT, skill: str = "say", prefix: str = ""
) -> Iterator[bytes]:
    """Requests without end, each signed when it is asked for: the moment it names is now.

    Args:
        keys: What they are signed with.
        to: The identity they are addressed to.
        skill: What they ask for.
        prefix: The path before the endpoint's, which the package's client does not sign.
    """
    for number in itertools.count():
        yield _signed(number, keys, to, skill, prefix)


def _signed(number: int, keys: Keypair, to: str, skill: str, prefix: str) -> bytes:
    # The server holds the timestamp against its own clock.
    now = datetime.now(UTC)  # noqa: TID251
    envelope = {
        "from": SENDER,
        "to": to,
        "skill": skill,
        "mode": "sync",
        "nonce": f"nonce-{number:09}",
        "timestamp": now.isoformat().replace("+00:00", "Z"),
        "traceId": f"trace-{number:09}",
        "spanId": f"span-{number:09}",
        "payload": {"text": "@@"},
    }
    body = filled(canonical_json(envelope))
    headers = {"content-type": "application/json", "content-digest": content_digest(body)}
    signature = sign_request("POST", _PATH, headers, keys.private_key_b64, keys.kid)
    return post(prefix + _PATH, body, headers | signature)
