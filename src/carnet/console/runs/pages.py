"""The pages of runs.

Law 1. The list and the pictures of a run grow while they are looked at; what was said is read when
       the page is opened, and again when a turn has ended.
Law 2. Why a turn was admitted is shown to whoever may ask the API for it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from carnet.console.api import PageAsker, segment
from carnet.console.live import LOOK_SECONDS, Change, Live, LiveFrame, Ticks
from carnet.console.runs.graph import chain_graph
from carnet.console.runs.hops import ENDED, hops_of, mark_of, organisations
from carnet.console.runs.transcript import transcript
from carnet.console.runs.waterfall import waterfall
from carnet.console.runs.wire import (
    CHAT_PATH,
    chain_fields,
    request_again,
    same_request,
    wire_of,
)
from carnet.console.shell import GUARDED, Shell, action_row, page_row, without_twin
from carnet.console.words import run_link
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, RunNotFound
from carnet.http.exchange import SEES_ALL, Exchange, reader_of
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.query import read_query, read_word
from carnet.wire.stamps import tangle

Page = dict[str, Any]
Watch = Callable[[str], AbstractContextManager[Change]]

FILTERS: Final = ("agent", "actor", "speaker", "state", "code", "payer", "since", "before")
CHIPS: Final = ("running", "waiting", "failed", "done")
_FIRST: Final = {"waiting": 0, "failed": 1}


class RunPages:
    """What happened, drawn."""

    def __init__(self, shell: Shell, live: Live, watch: Watch, clock: Clock, *, url: str) -> None:
        """`watch` tells when a journal grows; `url` is where this gateway is called."""
        self._shell = shell
        self._live = live
        self._watch = watch
        self._clock = clock
        self._url = url

    # ------------------------------------------------------------------ the list

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/runs: the newest, those that wait or were refused before the others."""
        asked = _filter(exchange)
        lone = asked.pop("run", None)
        if lone is not None:  # an id leads to its run
            headers = [*GUARDED, (b"location", run_link(lone).encode())]
            await exchange.reply(303, headers, b"")
            return
        page = await self._listed(self._shell.api.of(exchange), asked)
        await self._shell.show(exchange, caller, "runs.html", page)

    async def _listed(self, api: PageAsker, asked: dict[str, str]) -> Page:
        found = await api.get("/runs", asked)
        runs = found["runs"]
        if "before" not in asked:
            runs = sorted(runs, key=lambda run: _FIRST.get(run["state"], 2))
        words = [f"{name}:{value}" for name, value in asked.items() if name != "before"]
        return {
            "title": "Runs",
            "runs": runs,
            "next": found["next"],
            "asked": asked,
            "q": " ".join(words),
            "chips": CHIPS,
        }

    async def live_list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/live/runs: the rows of the list, as they change."""
        asked, api = _filter(exchange), self._shell.api.of(exchange)

        async def read() -> LiveFrame:
            page = await self._listed(api, asked)
            return LiveFrame(one_line(self._shell.templates.write("runs_rows.html", page)))

        key = ("runs", *_whose(caller, asked), tuple(asked.items()))
        await self._live.follow(exchange, caller, key, Ticks(), read, rest=LOOK_SECONDS)

    # ------------------------------------------------------------------ one run

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/runs/{run}."""
        run, api = without_twin(exchange, name), self._shell.api.of(exchange)
        found = await api.get(f"/runs/{segment(run)}", {"full": "true"})
        page = self._drawn(found) | {
            "title": f"Run {run}",
            "transcript": transcript(found, self._shell.domain),
            "is_cut": found["is_cut"],
            "why": await _why(api, caller, run),
            "may_cancel": caller.may("run:cancel"),
        }
        await self._shell.show(exchange, caller, "run.html", page)

    def _drawn(self, found: Page) -> Page:
        hops = hops_of(found, self._shell.domain)
        rows = waterfall(hops, self._clock.wall_us())
        return {
            "run": {name: value for name, value in found.items() if name != "turns"},
            "tokens": _tokens(found["turns"]),
            "count": len(hops),
            "organisations": organisations(hops),
            "waterfall": rows,
            "took": max((row["took"] for row in rows), default=0),
            "graph": chain_graph(hops),
            "money": [
                {"agent": hop.agent, "payer": hop.payer, "cost": hop.cost, "turn": hop.turn}
                for hop in hops
                if hop.cost is not None
            ],
            "refusals": [row for row in rows if row["code"] is not None],
            "is_over": found["state"] in ENDED,
            "mark": mark_of(found, hops),
        }

    async def live_run(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /console/live/runs/{run}?mark=...: the pictures of a run, as it goes on.

        A page that was drawn from the run sends the mark that it had then.
        """
        mark = read_word(read_query(exchange.query.decode("latin-1")), "mark")
        api = self._shell.api.of(exchange)
        await api.get(f"/runs/{segment(run)}")  # one that she may not see is refused

        async def read() -> LiveFrame:
            page = self._drawn(await api.get(f"/runs/{segment(run)}"))
            shown = self._shell.templates.write("run_live.html", page)
            return LiveFrame(one_line(shown), page["is_over"], page["mark"])

        with self._watch(run) as watching:
            key = ("run", *_whose(caller), run)
            await self._live.follow(exchange, caller, key, watching, read, mark=mark)

    async def transcript_part(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /console/runs/{run}/transcript: what was asked and answered, by itself."""
        found = await self._shell.api.get(exchange, f"/runs/{segment(run)}", {"full": "true"})
        page = {
            "transcript": transcript(found, self._shell.domain),
            "is_cut": found["is_cut"],
            "run": found,
        }
        await self._shell.write(exchange, caller, "transcript.html", page)

    async def wire(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """GET /console/runs/{run}/wire?turn=...: what was sent for a turn, and what came back."""
        turn = read_word(read_query(exchange.query.decode("latin-1")), "turn")
        if turn is None:
            raise InvalidRequest("turn", "must be there")
        found = await self._shell.api.get(exchange, f"/runs/{segment(run)}", {"full": "true"})
        turns = [each for each in _all(found["turns"]) if each["turn"] == turn]
        if not turns:
            raise RunNotFound
        actor = caller.actor.name
        wires = [
            wire_of(run, each, self._url) | {"may_repeat": same_request(each, actor) is not None}
            for each in turns
        ]
        await self._shell.write(exchange, caller, "wire.html", {"run": run, "wires": wires})

    async def replay(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """POST /console/runs/{run}/replay?turn=...&as=same|new: what a turn asked, asked again.

        As the same turn it is answered from its record: nothing runs, and nothing is billed. As a
        new one it is a run of hers.
        """
        api, query = self._shell.api.of(exchange), read_query(exchange.query.decode("latin-1"))
        name, is_same = read_word(query, "turn"), read_word(query, "as") == "same"
        found = await api.get(f"/runs/{segment(run)}", {"full": "true"})
        turn = next((each for each in _all(found["turns"]) if each["turn"] == name), None)
        if turn is None:
            raise RunNotFound
        again = same_request(turn, caller.actor.name) if is_same else request_again(turn)
        if again is None:
            raise InvalidRequest("turn", "cannot be asked again by you in this way")
        path = turn["wire"]["path"] if is_same else CHAT_PATH
        fields = chain_fields(run, turn) if is_same else None
        answer = await api.ask("POST", path, again, headers=fields)
        page = {
            "is_same": is_same,
            "turn": turn,
            "answer": {"status": answer.status, "body": answer.page},
            "was_recorded": is_same and await _is_as_before(api, run, found),
            "run": dict(answer.headers).get(tangle.RUN_ID.encode(), b"").decode("latin-1"),
        }
        await self._shell.write(exchange, caller, "replay.html", page)

    async def cancel(self, exchange: Exchange, caller: Caller, run: str) -> None:
        """POST /console/runs/{run}/cancel."""
        await self._shell.api.of(exchange).ask("POST", f"/runs/{segment(run)}/cancel")
        await self._shell.write(
            exchange, caller, "notice.html", {"text": "The run is being cancelled."}
        )


async def _is_as_before(api: PageAsker, run: str, before: Page) -> bool:
    """Whether nothing of a run has begun since."""
    now = await api.get(f"/runs/{segment(run)}")
    return _begun(now) == _begun(before)


def _begun(found: Page) -> list[tuple[str, int]]:
    return [(each["turn"], each["attempt"]) for each in _all(found["turns"])]


def _whose(caller: Caller, asked: Mapping[str, str] | None = None) -> tuple[str | None, ...]:
    """Whose view it is: all who see everything see the same, but for what each of them pays."""
    reader = reader_of(caller)
    is_same = reader is None and "payer" not in (asked or {})
    return (None,) if is_same else (reader, caller.owner)


def one_line(page: bytes) -> bytes:
    """What one event can hold: between elements a line break is a space like any other."""
    return b" ".join(line.strip() for line in page.splitlines())


def _filter(exchange: Exchange) -> dict[str, str]:
    """What the list is asked for: by names, and by the words of the box, `agent:echo`."""
    query = read_query(exchange.query.decode("latin-1"))
    asked: dict[str, str] = {}
    for word in (query.get("q", [""])[0])[:512].split():
        name, colon, value = word.partition(":")
        if colon and name in FILTERS and value:
            asked[name] = value
        elif not colon:
            asked["run"] = word
        else:
            raise InvalidRequest("q", f"is made of a run's id, or of words such as {_EXAMPLE}")
    for name in FILTERS:
        value = query.get(name, [""])[0]
        if value:
            asked[name] = value
    return asked


_EXAMPLE: Final = "agent:echo and state:failed"


async def _why(api: PageAsker, caller: Caller, run: str) -> list[Page] | None:
    if not caller.may(SEES_ALL):
        return None
    turns: list[Page] = (await api.get(f"/runs/{segment(run)}/grounds"))["turns"]
    return turns


def _all(turns: Sequence[Page]) -> list[Page]:
    return [each for turn in turns for each in (turn, *_all(turn["children"]))]


def _tokens(turns: Sequence[Page]) -> Page:
    counted = [turn["tokens"] for turn in _all(turns) if turn["tokens"]]
    return {
        "in": sum(each.get("in") or 0 for each in counted),
        "out": sum(each.get("out") or 0 for each in counted),
    }


_READ: Final = {"permission": "run:read"}
ROUTES: Final = (
    *page_row("/console/runs", RunPages.list, "The runs", **_READ),
    *page_row("/console/runs/{run}", RunPages.show, "One run", **_READ),
    action_row(
        "GET",
        "/console/runs/{run}/transcript",
        RunPages.transcript_part,
        "What was said in it",
        **_READ,
    ),
    action_row("GET", "/console/runs/{run}/wire", RunPages.wire, "What was sent", **_READ),
    action_row("POST", "/console/runs/{run}/replay", RunPages.replay, "Ask a turn again", **_READ),
    action_row("GET", "/console/live/runs", RunPages.live_list, "The runs, live", **_READ),
    action_row("GET", "/console/live/runs/{run}", RunPages.live_run, "One run, live", **_READ),
    action_row(
        "POST",
        "/console/runs/{run}/cancel",
        RunPages.cancel,
        "End a run",
        permission="run:cancel",
    ),
)
