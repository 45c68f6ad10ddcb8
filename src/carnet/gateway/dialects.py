"""The routes of all dialects, as rows of the router.

Law. What comes by a way of a dialect goes to that dialect's endpoint or questions, at its own path
and, where the dialect says so, below the prefix of every agent.
"""

import re
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import Any, Final

from carnet.core.people.identity import Caller
from carnet.gateway.endpoint import DialectEndpoint
from carnet.gateway.own_tasks.endpoint import TaskEndpoint
from carnet.gateway.own_tasks.questions import OwnTasks
from carnet.gateway.questions import Questions
from carnet.http.exchange import Endpoint, Exchange, Row
from carnet.ports.world.records import READER, STRANGER
from carnet.wire.dialects.dialect import Way
from carnet.wire.dialects.route import Route

PREFIX = "/agents/{name}"
_NAMED: Final = re.compile(r"\{([a-z]+)\}")


def rows_of(
    ways: Iterable[Way],
    calls: DialectEndpoint,
    questions: Questions,
    own_tasks: OwnTasks | None = None,
) -> list[Row]:
    """The rows of one dialect; `own_tasks` are for one that says in its bodies what is asked."""
    rows: list[Row] = []
    for way in ways:
        endpoint = (
            _either(way, calls, own_tasks)
            if isinstance(calls, TaskEndpoint) and own_tasks is not None
            else _endpoint(way, calls, questions)
        )
        rows.append(_row(way, way.path, endpoint))
        if way.below_agents:
            rows.append(_row(way, PREFIX + way.path, endpoint))
    return rows


def _row(way: Way, path: str, endpoint: Endpoint) -> Row:
    given: dict[str, Any] = {name: getattr(way, name) for name in Route.__struct_fields__}
    return Row(**{**given, "path": path, "endpoint": endpoint})


def _endpoint(way: Way, calls: DialectEndpoint, questions: Questions) -> Endpoint:
    if way.kind == "question":
        return _question(way, questions)
    return partial(calls.task if way.kind == "task" else calls.call, way)


def _either(way: Way, calls: TaskEndpoint, own_tasks: OwnTasks) -> Endpoint:
    named = _NAMED.findall(way.path)
    asked = partial(calls.either, way, own_tasks)
    if not named:
        return asked

    def asked_about(exchange: Exchange, *given: str) -> Awaitable[None]:
        agent = given[0] if len(given) > len(named) else None
        names = dict(zip(named, given[len(given) - len(named) :], strict=True))
        return asked(exchange, agent, names)

    return asked_about


def _question(way: Way, questions: Questions) -> Endpoint:
    named = _NAMED.findall(way.path)

    async def asked(exchange: Exchange, *given: Any) -> None:
        caller: Caller | None = None
        if way.auth == "token":
            caller, given = given[0], given[1:]
        else:
            READER.set(STRANGER)
        agent = given[0] if len(given) > len(named) else None
        names = dict(zip(named, given[len(given) - len(named) :], strict=True))
        await questions.ask(way, exchange, caller, agent=agent, names=names)

    return asked
