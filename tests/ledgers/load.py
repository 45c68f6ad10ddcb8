"""Random calls from many clients while the line breaks and either gateway is killed."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from itertools import count
from typing import Final

from msgspec import Struct, field

from carnet.testing.toxic import Toxic
from tests.faults.stores import end_leases
from tests.ledgers.scene import TOXICS, Called, World
from tests.support.organisation import Organisation

CLIENTS: Final = 4
MOST_TRIES: Final = 3
REST_SECONDS: Final = 0.2


class Made(Struct):
    """What was done."""

    calls: list[Called] = field(default_factory=list)
    requests: int = 0
    kills: int = 0
    ends: dict[str, int] = field(default_factory=dict)  # by status, or "cut off"


class Load:
    """So many calls, and the kills spread over them."""

    def __init__(self, world: World, *, calls: int, kills: int, seed: int) -> None:
        self._world = world
        self._calls = calls
        every = max(1, calls // (kills + 1))
        self._fatal = {every * place for place in range(1, kills + 1)}
        self._seed = seed
        self._numbers = count()
        self._lock = threading.Lock()
        self._killing = threading.Lock()
        self.made = Made()

    def run(self) -> Made:
        """Make all of them, and leave both gateways well."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(self._client, place) for place in range(CLIENTS)]:
                done.result()
        self._world.proxy.toxic = Toxic()
        return self.made

    def _client(self, place: int) -> None:
        dice = random.Random(f"{self._seed}/{place}")  # noqa: S311  a call is no secret
        while (number := next(self._numbers)) < self._calls:
            called = self._world.draw(dice, number)
            self.made.calls.append(called)
            self._world.proxy.toxic = dice.choice(TOXICS) if dice.random() < 0.1 else Toxic()
            if number + 1 in self._fatal:
                self._kill_during(called, dice)
            for _ in range(dice.randint(1, MOST_TRIES)):
                if self.ask(called) in {"cut off", "503"}:
                    self._rest()
            self._world.proxy.toxic = Toxic()

    def _rest(self) -> None:
        """Let who was killed come back, and circuits close: calls that are refused show nothing."""
        with self._killing:
            time.sleep(REST_SECONDS)

    def ask(self, called: Called) -> str:
        """Make a call once; its status."""
        try:
            end = str(self._reply(called))
        except (OSError, HTTPException):
            end = "cut off"
        with self._lock:
            self.made.requests += 1
            self.made.ends[end] = self.made.ends.get(end, 0) + 1
        if end == "402" or end.startswith("502"):  # perhaps somebody owes
            self._settle()
        return end

    def _reply(self, called: Called) -> int:
        return self._world.acme.chat(
            called.text,
            called.model,
            token=called.token,
            headers=called.headers,
            stream=called.stream,
        ).status

    def _settle(self) -> None:
        if self._killing.acquire(blocking=False):
            try:
                self._world.globex.try_carnet("ledger", "settle", "peer:acme.example")
            finally:
                self._killing.release()

    def _kill_during(self, called: Called, dice: random.Random) -> None:
        """Kill one of the two while this call, and whatever else, is being made."""
        with self._killing:
            self.made.kills += 1
            asking = threading.Thread(target=self.ask, args=(called,))
            asking.start()
            asking.join(dice.uniform(0, 0.05))
            killed = dice.choice((self._world.acme, self._world.globex))
            restart(killed)
        asking.join()


def restart(gateway: Organisation) -> None:
    """Kill a gateway and start it again."""
    gateway.kill()
    end_leases(gateway)
    gateway.start()
