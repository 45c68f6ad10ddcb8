"""The playground: a call of one's own, made in another mode, as somebody else or with a fault.

Law 1. What it sends is a request like any other: it comes in by the same routes, is judged by the
       same guards, and is answered or refused as it would be from outside.
Law 2. It goes to agents of this gateway that whoever plays may call, and to nobody else's.
Law 3. It is made as whoever plays, as nobody, or with a token of hers that she shows: never with
       more rights than one of her own tokens has. A token that is shown is kept nowhere.
Law 4. A fault is in the request itself, and in no other. That the agent fails is in no request
       that is sent: this gateway has a call of whoever plays end so, under a code of its own, and
       only where she has signed in. No token asks for it.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.console.api import ApiAnswer, PageAsker, segment
from carnet.console.forms import SentForm, read_form
from carnet.console.shell import Shell, action_row, page_row
from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, InvalidRequest, SessionRequired
from carnet.http.exchange import Exchange, RawHeaders
from carnet.wire.crypto import digests
from carnet.wire.grammar import json
from carnet.wire.grammar.query import read_query, read_word
from carnet.wire.stamps import tangle

Page = dict[str, Any]

HOME: Final = "/console/playground"
CHAT_PATH: Final = "/v1/chat/completions"
TASKS: Final = "/tasks"
MOST_BYTES: Final = 256 * 1024  # of an answer that is shown as it streams
BUDGET: Final = "carnet-budget"
REDACTED: Final = "***"
IDENTITIES: Final = {
    "me": "yourself",
    "nobody": "nobody: without a credential",
    "token": "another token of yours",
}
MODES: Final = {
    "sync": "wait for the answer",
    "stream": "have it come in pieces",
    "async": "as a task, answered later",
}
FAULTS: Final = {
    "none": "none",
    "depth": "the chain is as deep as none may be",
    "signature": "a signature that does not hold",
    "slow": "one second for all of it",
    "broke": "nothing may be paid",
    "500": "the agent fails",
}
_SHOWN: Final = frozenset(
    {b"content-type", b"retry-after", b"www-authenticate", b"location", b"x-correlation-id"}
)


class PlayedRequest(Struct, frozen=True, kw_only=True):
    """What is sent."""

    path: str
    body: Page
    headers: Mapping[str, str] = {}
    is_signed: bool = False  # then no credential goes with it
    is_to_fail: bool = False


class PlaygroundPages:
    """Calls to try."""

    def __init__(self, shell: Shell, *, max_depth: int) -> None:
        """`max_depth` is the first depth of a chain that is refused."""
        self._shell = shell
        self._max_depth = max_depth

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/playground."""
        models = await self._shell.api.get(exchange, "/v1/models")
        page = {
            "title": "Playground",
            "agents": [model["id"] for model in models["data"]],
            "identities": IDENTITIES,
            "modes": MODES,
            "faults": FAULTS,
            "max_depth": self._max_depth,
        }
        await self._shell.show(exchange, caller, "operations/playground.html", page)

    async def send(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/playground/send: make the call, and show what came of it."""
        own, browser = self._shell.api.of(exchange), exchange.headers.raw
        form = await read_form(exchange)
        agent, identity = form.text("agent"), _one_of(form, "identity", IDENTITIES)
        await own.get(f"/v1/models/{segment(agent)}")  # one that she may not call is refused
        asked = self._request(agent, form)
        if asked.is_to_fail and identity != "me":
            raise InvalidRequest("identity", "must be yourself where the agent is to fail")
        if asked.is_to_fail and caller.session is None:
            raise SessionRequired("a token asks for a call that fails")
        bare = [field for field in browser if field[0] in {b"host", b"user-agent"}]
        api = own
        if asked.is_signed:
            api = self._shell.api.of(exchange, bare)
        elif identity != "me":
            api = self._shell.api.of(exchange, await self._known(exchange, own, form, bare))
        page = await _outcome(api, asked)
        page["credential"] = "a signature" if asked.is_signed else IDENTITIES[identity]
        await self._shell.write(exchange, caller, "operations/played.html", page)

    async def task(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/playground/task?id=...: how a task goes."""
        name = read_word(read_query(exchange.query.decode("latin-1")), "id")
        if name is None:
            raise InvalidRequest("id", "must be there")
        found = await self._shell.api.get(exchange, f"{TASKS}/{segment(name)}")
        await self._shell.write(exchange, caller, "operations/task.html", {"task": found})

    async def _known(
        self, exchange: Exchange, own: PageAsker, form: SentForm, bare: RawHeaders
    ) -> RawHeaders:
        """The head of a request as nobody, or with a token that is one of hers."""
        if form.text("identity") != "token":
            return bare
        shown = (b"authorization", f"Bearer {form.text('token')}".encode("ascii", "replace"))
        asker = self._shell.api.of(exchange, [*bare, shown])
        person = (await own.get("/session"))["person"]
        if person is None or (await asker.get("/session"))["person"] != person:
            raise InvalidRequest("token", "must be one of yours")
        return [*bare, shown]

    def _request(self, agent: str, form: SentForm) -> PlayedRequest:
        mode, fault = _one_of(form, "mode", MODES), _one_of(form, "fault", FAULTS)
        text = form.whole("text") or "."
        if fault == "signature":
            return _badly_signed(agent, text)
        if fault == "500" and mode == "async":
            raise InvalidRequest("mode", "must be another one: a task fails when it runs, later")
        body: Page = {"model": agent, "messages": [{"role": "user", "content": text}]}
        if mode == "stream":
            body["stream"] = True
        headers = {
            "depth": {tangle.FORWARDED_DEPTH: str(self._max_depth)},
            "slow": {BUDGET: "seconds=1"},
            "broke": {BUDGET: "money=0"},
        }.get(fault, {})
        return PlayedRequest(
            path=TASKS if mode == "async" else CHAT_PATH,
            body=body,
            headers=headers,
            is_to_fail=fault == "500",
        )


def _one_of(form: SentForm, name: str, known: Mapping[str, str]) -> str:
    value = form.text(name) or next(iter(known))
    if value not in known:
        raise InvalidRequest(name, f"is none of {', '.join(known)}")
    return value


def _badly_signed(agent: str, text: str) -> PlayedRequest:
    """A signed request of SAMVAD whose signature is none."""
    body: Page = {"skill": "chat", "payload": {"text": text}}
    covered = '("@method" "@path" "content-digest")'
    return PlayedRequest(
        path=f"/agents/{segment(agent)}/agent/message",
        body=body,
        headers={
            "content-digest": digests.write(json.write(body)),
            "signature-input": f'sig1={covered};keyid="playground";alg="ed25519";created=1',
            "signature": "sig1=:bm90IGEgc2lnbmF0dXJl:",
        },
        is_signed=True,
    )


async def _outcome(api: PageAsker, asked: PlayedRequest) -> Page:
    """What was sent, and what came of it."""
    page: Page = {
        "path": asked.path,
        "sent": [{"name": name, "value": value} for name, value in asked.headers.items()],
        "body": asked.body,
        "error": None,
        "answer": "",
        "headers": [],
        "status": 0,
        "run": "",
        "task": None,
    }
    try:
        answer = await api.ask(
            "POST",
            asked.path,
            asked.body,
            headers=asked.headers,
            most_bytes=MOST_BYTES,
            is_to_fail=asked.is_to_fail,
        )
    except CarnetError as error:
        refused = {"code": error.code, "message": error.safe_text, "hint": error.hint}
        return page | {"status": error.status, "error": refused}
    fields = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
    return page | {
        "status": answer.status,
        "answer": answer.body.decode("utf-8", "replace"),
        "headers": [
            {"name": name, "value": value}
            for name, value in fields.items()
            if name.encode() in _SHOWN or name.startswith("x-tangle-")
        ],
        "run": fields.get(tangle.RUN_ID, ""),
        **_read(answer),
    }


def _read(answer: ApiAnswer) -> Page:
    """What an answer is, where it is a refusal or a task."""
    kind = dict(answer.headers).get(b"content-type", b"")
    if not kind.startswith(b"application/json"):
        return {}
    found = answer.page
    if not isinstance(found, dict):
        return {}
    error = found.get("error")
    if isinstance(error, dict):
        return {"error": {name: error.get(name) or "" for name in ("code", "message", "hint")}}
    return {"task": found.get("taskId")}


_PLAYS: Final = {"permission": "run:cancel"}
ROUTES: Final = (
    *page_row(HOME, PlaygroundPages.show, "The playground", **_PLAYS),
    action_row("POST", f"{HOME}/send", PlaygroundPages.send, "Make a call to try it", **_PLAYS),
    action_row("GET", f"{HOME}/task", PlaygroundPages.task, "How a task goes", **_PLAYS),
)
