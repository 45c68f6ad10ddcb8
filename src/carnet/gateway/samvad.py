"""The endpoints of the SAMVAD dialect: the default agent at the root, every agent at its prefix.

Law 1. What is asked of an agent comes signed; its card, introduction and health are for everybody.
Law 2. At the root the host decides: `NAME.DOMAIN` is that agent, any other host the default one.
Law 3. A stream begins when the call is admitted: what fails after that is told in its last frame.
Law 4. A task is judged as any call before it is accepted: what is wrong with it is told at once.
"""

from collections.abc import Callable, Sequence
from urllib.parse import quote

from carnet.core.address import Identities
from carnet.core.call import Call
from carnet.core.carnet import DepthLimits
from carnet.core.events import Event, Failed, Usage
from carnet.core.skill import CHAT, Mode
from carnet.errors import AgentNotFound, CarnetError
from carnet.gateway.answering import Answering, raw
from carnet.gateway.inbound import read_signed
from carnet.gateway.tasks import TASK, Accepting
from carnet.http.exchange import Exchange, RawHeaders
from carnet.ports.agent import Router, Target
from carnet.ports.clock import Clock
from carnet.ports.keys import OwnKeys
from carnet.wire import samvad

MESSAGE, STREAM = "/agent/message", "/agent/stream"


class SamvadDialect:
    """How answers are told in response envelopes."""

    begins_at_once = True

    def headers(self, call: Call, /, *, stream: bool) -> RawHeaders:
        """The fields of an answer."""
        run = (b"x-tangle-runid", call.carnet.run.encode())
        if not stream:
            return [
                run,
                (b"content-type", b"application/json"),
                (b"cache-control", b"no-store"),
            ]
        return [
            run,
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache"),
            (b"connection", b"keep-alive"),
            (b"x-accel-buffering", b"no"),
        ]

    def answer(self, call: Call, events: Sequence[Event], /) -> bytes:
        """One response envelope."""
        return samvad.write_answer(call.record, events, trace_id=call.carnet.run)

    def frames(self, call: Call, /) -> samvad.StreamWriter:
        """Chunks, and the frame that ends them."""
        return samvad.StreamWriter(call.record, trace_id=call.carnet.run)

    def refusal(
        self, call: Call, failed: Failed, usage: Usage | None, /
    ) -> tuple[int, RawHeaders, bytes]:
        """A response envelope with an error; the dialect cannot say what it has cost."""
        del usage
        status, headers, body = samvad.write_error(
            failed.error(), trace_id=call.carnet.run, span_id=samvad.span_of(call.record)
        )
        return status, raw(headers), body


class Published:
    """What the agents of a gateway say about themselves."""

    def __init__(
        self,
        *,
        router: Router,
        identities: Identities,
        keys: OwnKeys,
        clock: Clock,
        domain: str,
        public_url: str,
        agent_calls: int,
        sender_calls: int,
    ) -> None:
        """`agent_calls` and `sender_calls` are what may be asked in a minute.

        `public_url` is where others reach us; it may be known only when the server listens.
        """
        self._router = router
        self._identities = identities
        self._keys = keys
        self._clock = clock
        self._domain = domain
        self.public_url = public_url
        self._agent_calls = agent_calls
        self._sender_calls = sender_calls

    def named(self, exchange: Exchange) -> str:
        """The agent that the host of a request names; empty for the default one."""
        host = (exchange.headers.get("host") or "").lower().partition(":")[0]
        return self._identities.name(host) or ""

    def agent_of(self, exchange: Exchange, agent: str | None) -> str:
        """The name of the agent that a request is for: the one of its path, or of its host."""
        return self.target(self.named(exchange) if agent is None else agent).name

    def facts(self, name: str) -> samvad.CardFacts:
        """What the card of an agent tells."""
        target = self.target(name)
        identity = self._identities.of(target.name)
        if identity is None:
            raise AgentNotFound
        return samvad.CardFacts(
            id=identity,
            name=target.name,
            version=target.version,
            description=target.description or f"The agent {target.name} of {self._domain}.",
            url=self._url(target),
            skills=target.skills or (CHAT,),
            keys=tuple(
                samvad.CardKey(key.kid, key.public, key.state != "revoked")
                for key in self._keys.published(self._clock.wall_us())
            ),
            trust=target.trust,
            requests_per_minute=self._agent_calls,
            requests_per_sender=self._sender_calls,
            tokens_per_sender_per_day=target.tokens_per_day,
        )

    def target(self, name: str) -> Target:
        """The agent of ours that is called so; the default one for an empty name."""
        target = self._router.find(name)
        if all(target is not own for own in self._router.local()):
            raise AgentNotFound
        return target

    def _url(self, target: Target) -> str:
        base = self.public_url.rstrip("/")
        return base if target.default else f"{base}/agents/{quote(target.name, safe='')}"


class Samvad:
    """Answers the requests of the dialect."""

    def __init__(
        self,
        answering: Answering,
        *,
        published: Published,
        depths: DepthLimits,
        open_calls: Callable[[], int],
        waiting_tasks: Callable[[], int],
        accept: Accepting,
        clock: Clock,
    ) -> None:
        """`published` tells about the agents, `open_calls` and `waiting_tasks` how much is to do.

        `accept` answers for tasks.
        """
        self._answering = answering
        self._published = published
        self._depths = depths
        self._open_calls = open_calls
        self._waiting_tasks = waiting_tasks
        self._accept = accept
        self._clock = clock
        self._started = clock.monotonic()

    async def message(self, exchange: Exchange, agent: str | None = None) -> None:
        """POST /agent/message: ask and get the whole answer."""
        await self._ask(exchange, agent, "sync", MESSAGE)

    async def stream(self, exchange: Exchange, agent: str | None = None) -> None:
        """POST /agent/stream: ask and get the answer as it grows."""
        await self._ask(exchange, agent, "stream", STREAM)

    async def task(self, exchange: Exchange, agent: str | None = None) -> None:
        """POST /agent/task: ask, and be told under which id it will be answered."""
        call, began = await self._admitted(exchange, agent, "async", TASK)
        await self._accept(exchange, call, began)

    async def _ask(
        self, exchange: Exchange, agent: str | None, mode: Mode, short_path: str
    ) -> None:
        call, began = await self._admitted(exchange, agent, mode, short_path)
        await self._answering.answer(exchange, call, began)

    async def _admitted(
        self, exchange: Exchange, agent: str | None, mode: Mode, short_path: str
    ) -> tuple[Call, float]:
        answering = self._answering
        began = answering.begin()
        body = await answering.receive(exchange)
        claim = read_signed(
            exchange,
            body,
            self._depths,
            agent=self._published.named(exchange) if agent is None else agent,
            mode=mode,
            short_path=short_path,
        )
        try:
            return await answering.admit(claim), began
        except CarnetError as error:
            error.run = claim.marks[0].run
            raise

    async def card(self, exchange: Exchange, agent: str | None = None) -> None:
        """GET /.well-known/agent.json: what the agent is, can do and signs with."""
        facts = self._facts(exchange, agent)
        age = (b"cache-control", f"public, max-age={facts.ttl}".encode())
        json = (b"content-type", b"application/json")
        await exchange.reply(200, [json, age], samvad.write_card(facts))

    async def intro(self, exchange: Exchange, agent: str | None = None) -> None:
        """GET /agent/intro: the same for people."""
        facts = self._facts(exchange, agent)
        markdown = (b"content-type", b"text/markdown; charset=utf-8")
        await exchange.reply(200, [markdown], samvad.write_intro(facts))

    async def health(self, exchange: Exchange, agent: str | None = None) -> None:
        """GET /agent/health: that it answers, since when, and how much it has to do."""
        facts = self._facts(exchange, agent)
        uptime = int(self._clock.monotonic() - self._started)
        body = samvad.write_health(
            version=facts.version,
            uptime=uptime,
            active=self._open_calls(),
            queued=self._waiting_tasks(),
        )
        json = (b"content-type", b"application/json")
        await exchange.reply(200, [json, (b"cache-control", b"no-store")], body)

    def _facts(self, exchange: Exchange, agent: str | None) -> samvad.CardFacts:
        return self._published.facts(self._published.named(exchange) if agent is None else agent)
