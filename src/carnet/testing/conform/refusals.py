"""Checks of what comes before a stream: who is let in, what is taken, how a refusal is told."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from carnet.core.people.identity import Skill
from carnet.errors import CarnetError, InvalidJson, SchemaInvalid
from carnet.runtime.skills.schemas import CompiledSchemas
from carnet.testing.conform.probe import Body, LoopProbe, ProbeAnswer, expect
from carnet.testing.conform.verdict import BrokenPlace, Verdict, judged
from carnet.wire.dialects import engine_chat
from carnet.wire.grammar import json

CODES: Final = {
    400: "invalid_request",
    401: "unauthorized",
    404: "not_found",
    503: "engine_unavailable",
}
UNKNOWN: Final = "kit-credential-of-nobody"
CONFIGURED: Final = (
    *("provider", "provider_adapter", "model", "base_url", "tools", "tool_sources"),
    *("api_key", "api_key_env"),
)
CREDENTIALS: Final = ("authorization", "token", "session_id", "password")

# What nobody outside may read: a path, a trace, a key.
UNSAFE: Final = re.compile(
    r"""(?:^|[\s"'(=:])(?:/[\w.-]+){2,}|[A-Za-z]:\\|Traceback|\bFile "|\bline \d+|\.py\b|"""
    r"""\bat 0x|\bsk-\w|\bBearer \S|Exception\b|\b\w+Error\b""",
    re.ASCII,
)

Probed = AsyncIterator[BrokenPlace]

_SCHEMAS: Final = CompiledSchemas()


@cache
def schema(name: str) -> Skill:
    """A schema of the contract, as it is published."""
    file = Path(engine_chat.__file__).with_name("schemas") / f"{name}.json"
    whole = json.read_object(file.read_bytes())
    return Skill(id=name, name="", description="", input_schema=whole, output_schema={})


def misfit(form: Skill, value: dict[str, Any]) -> str:
    """Why a value is not in a form; empty where it is."""
    try:
        _SCHEMAS.check_input("kit", form, value)
    except SchemaInvalid as error:
        return error.safe_text
    return ""


async def no_credential(loop: LoopProbe) -> Probed:
    """Without a credential a request is refused with 401."""
    answer = await loop.ask("no credential", loop.body(), credential="")
    for broken in expect(answer, 401):
        yield broken


async def wrong_credential(loop: LoopProbe) -> Probed:
    """A credential that is nobody's is refused with 401."""
    answer = await loop.ask("a credential of nobody", loop.body(), credential=UNKNOWN)
    for broken in expect(answer, 401):
        yield broken


async def forged_identity(loop: LoopProbe) -> Probed:
    """Who says of itself who it is, in X-Actor-ID, is nobody: 401."""
    forged = {"x-actor-id": "owner", "x-actor-permissions": '{"allow":["*"],"deny":[]}'}
    for credential in ("", UNKNOWN):
        answer = await loop.ask("X-Actor-ID", loop.body(), credential=credential, headers=forged)
        for broken in expect(answer, 401):
            yield broken


async def other_path(loop: LoopProbe) -> Probed:
    """There is one path; at others there is nothing: 404."""
    for path in ("/engine/other", "/v1/chat/completions"):
        for broken in expect(await loop.ask(f"POST {path}", loop.body(), path=path), 404):
            yield broken


async def other_method(loop: LoopProbe) -> Probed:
    """It is asked by POST; another method is refused with 405."""
    for method in ("GET", "PUT"):
        body = b"" if method == "GET" else loop.body()
        for broken in expect(await loop.ask(f"{method} /engine/chat", body, method=method), 405):
            yield broken


async def body_form(loop: LoopProbe) -> Probed:
    """A body that is no JSON object is refused with 400."""
    for body in (b"", b"{", b"[]", b'"Hi"', b"\xff"):
        for broken in expect(await loop.ask(f"the body {body!r}", body), 400):
            yield broken


async def messages_form(loop: LoopProbe) -> Probed:
    """Messages that are missing, or not in their form, are refused with 400."""
    user, metadata = loop.user(), loop.body()["metadata"]
    wrong: list[tuple[str, Any]] = [
        ("no message", []),
        ("messages that are text", "Hi"),
        ("a message that is text", ["Hi"]),
        ("a message without a role", [{"content": "Hi"}]),
        ("a message without content", [{"role": "user"}]),
        ("a role that is not known", [{**user, "role": "invalid"}]),
        ("content that is a number", [{**user, "content": 7}]),
        ("arguments that are text", [_calling("kit_call", "{}")]),
    ]
    asked = [(what, {"messages": messages, "metadata": metadata}) for what, messages in wrong]
    for what, body in [("no messages", {"metadata": metadata}), *asked]:
        for broken in expect(await loop.ask(what, body), 400):
            yield broken


async def correlation_needed(loop: LoopProbe) -> Probed:
    """Metadata with a correlation_id is needed; without it a request is refused with 400."""
    messages = [loop.user()]
    for what, body in (
        ("no metadata", {"messages": messages}),
        ("metadata that is a list", {"messages": messages, "metadata": []}),
        ("no correlation_id", {"messages": messages, "metadata": {}}),
        ("an empty correlation_id", loop.body(correlation_id="")),
        ("a correlation_id that is a number", loop.body(correlation_id=7)),
    ):
        for broken in expect(await loop.ask(what, body), 400):
            yield broken


async def configuration_refused(loop: LoopProbe) -> Probed:
    """What a loop is configured with, at the top or in the metadata, is refused with 400 (R19)."""
    async for broken in _kept_out(loop, CONFIGURED):
        yield broken


async def credentials_refused(loop: LoopProbe) -> Probed:
    """A credential in a body, at the top or in the metadata, is refused with 400."""
    async for broken in _kept_out(loop, CREDENTIALS):
        yield broken


async def top_refused(loop: LoopProbe) -> Probed:
    """Nothing else stands at the top, no version, route or envelope: 400 (R19)."""
    for name in ("version", "route", "stream", "kit_other"):
        for broken in expect(await loop.ask(f"{name} at the top", {**loop.body(), name: 1}), 400):
            yield broken


async def trigger_form(loop: LoopProbe) -> Probed:
    """A trigger is message, webhook or schedule; another one is refused with 400."""
    for broken in expect(await loop.ask("an unknown trigger", loop.body(trigger="cron")), 400):
        yield broken


async def _kept_out(loop: LoopProbe, names: Iterable[str]) -> Probed:
    for name in names:
        for what, body in (
            (f"{name} at the top", {**loop.body(), name: "kit"}),
            (f"{name} in the metadata", loop.body(**{name: "kit"})),
        ):
            for broken in expect(await loop.ask(what, body), 400):
                yield broken


def _calling(id: str, arguments: object) -> Body:
    call = {"id": id, "name": "kit_tool", "arguments": arguments}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


# ------------------------------------------------------------------ of all refusals that came


def refusals_judged(loop: LoopProbe) -> Iterator[Verdict]:
    """How they are told."""
    refused = [each for each in loop.answers if each.status and not each.is_stream]
    yield judged(
        "refusal-form",
        "A refusal is JSON with exactly code and message.",
        [broken for each in refused for broken in _form(each)],
        is_seen=bool(refused),
    )
    yield judged(
        "refusal-code",
        "The code of a refusal goes with its status.",
        [broken for each in refused for broken in _code(each)],
        is_seen=bool(refused),
    )
    yield judged(
        "refusal-safe",
        "A refusal shows no path, no trace and no credential.",
        [broken for each in refused for broken in unsafe(each.asked, message_of(each.body))],
        is_seen=bool(refused),
    )
    yield judged(
        "unavailable",
        "A loop that stops, or has too much to do, says so by 503 and engine_unavailable.",
        [broken for each in refused if each.status == 503 for broken in _code(each)],  # noqa: PLR2004
        is_seen=any(each.status == 503 for each in refused),  # noqa: PLR2004  by its number
    )


def _form(answer: ProbeAnswer) -> Iterator[BrokenPlace]:
    wanted = "application/json, and exactly {code, message}"
    try:
        wrong = misfit(schema("refusal"), json.read_object(answer.body))
    except InvalidJson:
        wrong = "no JSON object"
    if not answer.media.startswith("application/json"):
        wrong = f"the content-type {answer.media!r}"
    if wrong:
        yield BrokenPlace(wanted, f"{answer.summary} ({wrong})")


def _code(answer: ProbeAnswer) -> Iterator[BrokenPlace]:
    wanted = CODES.get(answer.status)
    if wanted is None:
        return
    try:
        code = json.read_object(answer.body).get("code")
    except CarnetError:
        code = None
    if code != wanted:
        yield BrokenPlace(f"the code {wanted} beside {answer.status}", answer.summary)


def message_of(body: bytes) -> str:
    """The message of an error; all of it where it is not in its form."""
    try:
        message = json.read_object(body).get("message")
    except CarnetError:
        message = None
    return message if isinstance(message, str) else body.decode(errors="replace")


def unsafe(asked: str, message: str) -> Iterator[BrokenPlace]:
    """What is broken where a message shows more than it may."""
    found = UNSAFE.search(message)
    if found:
        yield BrokenPlace("a message that anybody may read", f"{asked}: {found[0].strip()!r}")
