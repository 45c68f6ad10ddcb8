"""What a person does with her hooks, as far as it is not what she does with schedules.

Law. A secret is shown once: when it is made.
"""

from collections.abc import Mapping
from typing import Any, Final

from carnet.core.people.identity import Caller
from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.template import read_template
from carnet.errors import InvalidRequest
from carnet.gateway.triggers.forms import (
    SCHEMAS,
    Page,
    hook_page,
    read_new_hook,
    read_secret,
    refuse_unknown,
    secret_page,
)
from carnet.gateway.triggers.own_triggers import OwnTriggers, TriggerParts, need, whose
from carnet.ports.calls.triggers import Hook, Owned, TriggerKind
from carnet.wire.grammar import json
from carnet.wire.hooks.scheme import SCHEMES, new_secret

USUAL_HOURS: Final = 24  # that a former secret is good for
MOST_HOURS: Final = 168
_HOUR_US: Final = 3600 * SECOND_US


class HookNoun:
    """Hooks: `own_triggers.TriggerNoun`."""

    kind: TriggerKind = "webhook"
    plural: str = "hooks"

    def __init__(self, parts: TriggerParts) -> None:
        self._parts = parts
        self.owned: Final[Owned[Hook]] = parts.hooks.own

    async def add(self, caller: Caller, whose: tuple[int, int], asked: Mapping[str, Any]) -> Page:
        """Make a hook; its secret is shown this once."""
        parts = self._parts
        new, given = read_new_hook(
            asked, whose=whose, check_agent=lambda name: parts.agent(caller, name)
        )
        secret = given or new_secret(SCHEMES[new.scheme], parts.ids.token())
        most, now = parts.bounds.hooks, parts.clock.wall_us()
        hook = await parts.hooks.add(new, secret, most=most, now=now)
        return secret_page(self.page(hook), self._address(hook), secret)

    def page(self, trigger: Hook) -> Page:
        """One as it is listed."""
        ended = self._parts.ends.known(trigger.token)
        return hook_page(trigger, self._address(trigger), ended)

    def details(self, trigger: Hook) -> Page:
        """Nothing more."""
        del trigger
        return {}

    async def resume(self, trigger: Hook, token: int) -> bool:
        """Let it take events again."""
        return await self.owned.resume(trigger.person, trigger.name, token=token)

    async def fire(self, trigger: Hook, event: Mapping[str, Any]) -> None:
        """Have it begin now, as if this event had come."""
        parts = self._parts
        id, now = parts.ids.uuid(), parts.clock.wall_us()
        values = {"body": event, "event": id, "hook": trigger.name}
        firing = parts.firing(read_template(trigger.template).write(values, json.write_text))
        most = parts.bounds.firings
        await parts.hooks.receive(trigger, id, firing, expires=now, most=most, now=now)

    async def rotate(
        self, own: OwnTriggers[Hook], caller: Caller, name: str, asked: Mapping[str, Any]
    ) -> Page:
        """Give one another secret, which is shown this once; the former is good for a while.

        Who knows a secret has the hook begin what it likes: it runs with the token that asked.
        """
        refuse_unknown(asked, SCHEMAS["NewSecret"]["properties"])
        hook, parts = await own.find(caller, name), self._parts
        hours = asked.get("hours", USUAL_HOURS)
        if type(hours) is not int or not 0 <= hours <= MOST_HOURS:
            raise InvalidRequest("hours", f"must be a whole number from 0 to {MOST_HOURS}")
        given = read_secret(asked.get("secret"), hook.scheme)
        secret = given or new_secret(SCHEMES[hook.scheme], parts.ids.token())
        until, token = parts.clock.wall_us() + hours * _HOUR_US, whose(caller)[1]
        parts.agent(caller, hook.agent)
        need(await parts.hooks.rotate(hook, secret, token=token, until=until))
        hook = await own.find(caller, name)
        return secret_page(self.page(hook), self._address(hook), secret)

    def _address(self, hook: Hook) -> str:
        """Where events of a hook are sent."""
        parts = self._parts
        person = parts.people.numbered(hook.person)
        return f"{parts.public_url}/hooks/{'' if person is None else person.name}.{hook.name}"
