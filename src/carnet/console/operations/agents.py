"""The agents of this gateway: the cards that others read of them, judged; and their skills, tried.

Beside them stand those of other organisations, for who may read how calls went.

Law 1. A card is shown as it is published, and judged as whoever reads it would judge it.
Law 2. A skill is tried as a call like any other: by whoever presses the button, at her cost.
"""

from typing import Any, Final

import msgspec

from carnet.console.api import ApiAnswer, PageAsker, segment
from carnet.console.forms import SentForm, fields_of, read_fields, read_form
from carnet.console.shell import Shell, action_row, page_row, without_twin
from carnet.core.people.identity import Caller
from carnet.errors import CarnetError, PeerUnreachable
from carnet.http.exchange import Exchange
from carnet.wire.dialects.a2a.card.findings import findings_of
from carnet.wire.dialects.samvad.card import read_card

Page = dict[str, Any]

HOME: Final = "/console/agents"
A2A: Final = "agent-card.json"
SAMVAD: Final = "agent.json"
TERMS: Final = "carnet.json"
CHAT: Final = "chat"  # the skill of an agent that has no other: text in, text out
KNOWS_PARTNERS: Final = "metrics"
_REFUSED: Final = 400


class AgentPages:
    """What can be called here."""

    def __init__(self, shell: Shell, *, url: str) -> None:
        """`url` is where this gateway is called, which cards are judged by."""
        self._shell = shell
        self._url = url

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/agents: those that she may call."""
        api = self._shell.api.of(exchange)
        models = await api.get("/v1/models")
        page = {
            "title": "Agents",
            "agents": [model["id"] for model in models["data"]],
            "elsewhere": await api.get("/partners") if caller.may(KNOWS_PARTNERS) else None,
        }
        await self._shell.show(exchange, caller, "operations/agents.html", page)

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /console/agents/{agent}: its cards, its terms and its skills."""
        api, name = self._shell.api.of(exchange), without_twin(exchange, name)
        await api.get(f"/v1/models/{segment(name)}")  # one that she may not call is refused
        a2a, samvad = await _published(api, name, A2A), await _published(api, name, SAMVAD)
        terms = await _published(api, name, TERMS)
        page = {
            "title": name,
            "agent": name,
            "handle": f"@{name}@{self._shell.domain}",
            "cards": [
                _card("A2A", name, A2A, a2a, a2a_findings(a2a, self._url)),
                _card("SAMVAD", name, SAMVAD, samvad, samvad_findings(samvad)),
            ],
            "terms": (terms.page if terms else {}).get("terms"),
            "skills": _skills(samvad),
        }
        await self._shell.show(exchange, caller, "operations/agent.html", page)

    async def attempt(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /console/agents/{agent}/try: ask it for a skill."""
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        wanted = form.text("skill")
        known = _skills(await _published(api, name, SAMVAD))
        skill = next((each for each in known if each["id"] == wanted), None)
        answer = await api.ask("POST", "/v1/chat/completions", _asked(name, form, skill))
        await self._shell.write(exchange, caller, "operations/tried.html", _outcome(answer))


async def _published(api: PageAsker, agent: str, card: str) -> ApiAnswer | None:
    try:
        return await api.ask("GET", f"/agents/{segment(agent)}/.well-known/{card}")
    except CarnetError:  # not everything is published of every agent
        return None


def _card(kind: str, agent: str, file: str, answer: ApiAnswer | None, findings: list[Page]) -> Page:
    return {
        "kind": kind,
        "path": f"/agents/{segment(agent)}/.well-known/{file}",
        "card": None if answer is None else answer.page,
        "findings": findings,
    }


def a2a_findings(answer: ApiAnswer | None, url: str) -> list[Page]:
    """What is wrong with an A2A card that was read at `url`."""
    found = [] if answer is None else findings_of(answer.body, url=url)[1]
    return [msgspec.to_builtins(each) for each in found]


def samvad_findings(answer: ApiAnswer | None) -> list[Page]:
    """What is wrong with a SAMVAD card."""
    try:
        if answer is not None:
            read_card(answer.body)
    except PeerUnreachable as error:
        fix = "Correct it: nobody who checks it calls the agent."
        return [{"status": "fail", "message": error.detail, "fix": fix}]
    return []


def _skills(card: ApiAnswer | None) -> list[Page]:
    """The skills of a card, each with the fields of its form."""
    listed = [] if card is None else card.page.get("skills", [])
    found = [
        {
            "id": each["id"],
            "name": each.get("name") or each["id"],
            "description": each.get("description") or "",
            "schema": each.get("inputSchema"),
            "fields": None if each["id"] == CHAT else fields_of(each.get("inputSchema")),
        }
        for each in listed
    ]
    plain = {"id": CHAT, "name": CHAT, "description": "", "schema": None, "fields": None}
    return found or [plain]


def _asked(agent: str, form: SentForm, skill: Page | None) -> Page:
    """The call that a form makes, in the words of the API."""
    text = form.whole("text")
    call: Page = {"model": agent, "messages": [{"role": "user", "content": text or "."}]}
    if skill is None or skill["id"] == CHAT:
        return call
    has_fields = skill["fields"] is not None
    payload = read_fields(form, skill["schema"]) if has_fields else form.page("payload")
    return call | {"carnet": {"skill": skill["id"], "payload": payload or {}}}


def _outcome(answer: ApiAnswer) -> Page:
    """What came of a call."""
    page = answer.page
    run = next((value.decode() for name, value in answer.headers if name == b"x-tangle-runid"), "")
    if answer.status >= _REFUSED:
        error = page.get("error") or page
        hint = error.get("hint") or ""
        return {
            "run": run,
            "error": {**error, "hint": hint},
            "text": "",
            "result": None,
            "usage": {},
        }
    return {
        "run": run,
        "error": None,
        "text": page["choices"][0]["message"]["content"] or "",
        "result": (page.get("carnet") or {}).get("result"),
        "usage": page["usage"],
    }


_READ: Final = {"permission": "run:read"}
ROUTES: Final = (
    *page_row(HOME, AgentPages.list, "The agents", **_READ),
    *page_row(f"{HOME}/{{agent}}", AgentPages.show, "One agent", **_READ),
    action_row("POST", f"{HOME}/{{agent}}/try", AgentPages.attempt, "Try a skill", **_READ),
)
