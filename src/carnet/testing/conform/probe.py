"""Asks a loop as anybody could, and keeps all that it answered."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ProviderUnavailable, Unreachable
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, NotSent, Outbound
from carnet.testing.conform.verdict import BrokenPlace
from carnet.wire.grammar import json

PATH: Final = "/engine/chat"
MOST_BYTES: Final = 16 * 1024 * 1024  # of one answer
SHOWN: Final = 160  # characters of an answer that are told
CORRELATION: Final = "kit_request"

Body = dict[str, Any]


class ProbeAnswer(Struct, frozen=True, kw_only=True):
    """What came back."""

    asked: str  # in words
    status: int  # 0 where no answer came
    media: str = ""
    correlation: str | None = None  # by its header
    body: bytes = b""
    is_whole: bool = True  # it ended, and was not cut off

    @property
    def is_stream(self) -> bool:
        """Whether it is one that began."""
        return self.status == 200  # noqa: PLR2004  the only status of a stream

    @property
    def summary(self) -> str:
        """It in a few words."""
        if not self.status:
            return f"{self.asked}: no answer"
        text = self.body[:SHOWN].decode(errors="replace")
        return f"{self.asked}: {self.status} {text!r}"


class LoopProbe:
    """Asks one loop."""

    def __init__(
        self, http: HttpClient, url: str, token: Secret, *, text: str, seconds: float
    ) -> None:
        """`text` is what a user says; `seconds` the most that one answer may take."""
        self._http = http
        self._url = url
        self._seconds = seconds
        self.token = token
        self.text = text
        self.answers: list[ProbeAnswer] = []

    def body(self, *messages: Body, **metadata: Any) -> Body:
        """A request of the contract."""
        return {
            "messages": list(messages) or [self.user()],
            "metadata": {"correlation_id": CORRELATION, **metadata},
        }

    def user(self) -> Body:
        """What a user says."""
        return {"role": "user", "content": self.text}

    async def ask(
        self,
        asked: str,
        body: Body | bytes,
        *,
        method: str = "POST",
        path: str = PATH,
        credential: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ProbeAnswer:
        """Ask, and keep the answer; with another `credential`, or an empty one for none."""
        sent = self._outbound(body, method, path, credential, headers or {})
        try:
            async with self._http.send(sent) as answer:
                kept = await _read(asked, answer)
        except CarnetError as error:
            self._refuse_nobody(error)
            kept = ProbeAnswer(asked=asked, status=0, is_whole=False)
        self.answers.append(kept)
        return kept

    async def leave(self) -> None:
        """Ask, and hang up as soon as the answer begins."""
        try:
            async with self._http.send(self._outbound(self.body(), "POST", PATH, None, {})):
                pass
        except CarnetError as error:
            self._refuse_nobody(error)

    async def all(self, asked: str, count: int) -> list[ProbeAnswer]:
        """Ask several times at once."""
        return await asyncio.gather(*[self.ask(asked, self.body()) for _ in range(count)])

    def _outbound(
        self,
        body: Body | bytes,
        method: str,
        path: str,
        credential: str | None,
        headers: Mapping[str, str],
    ) -> Outbound:
        shown = self.token.reveal() if credential is None else credential
        secrets = {"authorization": Secret(f"Bearer {shown}")} if shown else {}
        return Outbound(
            url=self._url.rstrip("/") + path,
            method=method,
            body=body if isinstance(body, bytes) else json.write(body),
            headers={
                "content-type": "application/json",
                "x-correlation-id": CORRELATION,
                **headers,
            },
            secrets=secrets,
            bounds=Bounds(total_seconds=self._seconds, max_bytes=MOST_BYTES),
        )

    def _refuse_nobody(self, error: CarnetError) -> None:
        """Where nobody is there nothing can be judged."""
        if isinstance(error, ProviderUnavailable) and isinstance(error.__cause__, NotSent):
            raise Unreachable(url=self._url) from error


async def _read(asked: str, answer: HttpAnswer) -> ProbeAnswer:
    chunks: list[bytes] = []
    is_whole = True
    try:
        while chunk := await answer.next():
            chunks.append(chunk)
    except CarnetError:
        is_whole = False
    return ProbeAnswer(
        asked=asked,
        status=answer.status,
        media=answer.header("content-type") or "",
        correlation=answer.header("x-correlation-id"),
        body=b"".join(chunks),
        is_whole=is_whole,
    )


def expect(answer: ProbeAnswer, *statuses: int) -> Iterator[BrokenPlace]:
    """What is broken where an answer has another status."""
    if answer.status not in statuses:
        yield BrokenPlace(" or ".join(map(str, statuses)), answer.summary)
