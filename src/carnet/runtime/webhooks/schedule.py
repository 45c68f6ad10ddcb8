"""The schedule of webhook deliveries: what becomes of one after an attempt.

Law 1. Only 2xx delivers. 410 ends the delivery and its address; everything else is tried again, as
       often as the schedule says, each time with a jitter of a tenth.
Law 2. A receiver that says how long to wait (429, 503) is left alone for that long, at most a day.
Law 3. A receiver that fails is paused, longer each time: one that is down costs a few attempts,
       and holds up nobody else.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from carnet.ports.world.clock import Ids
from carnet.ports.world.outbox import Outcome, StoredDelivery

SECOND_US: Final = 1_000_000
SCHEDULE: Final = (
    0.0,
    5.0,
    300.0,
    1800.0,
    7200.0,
    18_000.0,
    36_000.0,
    50_400.0,
    72_000.0,
    86_400.0,
)
JITTER: Final = 0.1
GRACE_SECONDS: Final = 3600  # for what was held up beyond the schedule
MOST_ASKED_SECONDS: Final = 86_400
FIRST_PAUSE_SECONDS: Final = 5.0
MOST_PAUSE_SECONDS: Final = 300.0

_MOST_DOUBLED: Final = 16
_TAKEN: Final = range(200, 300)
_ELSEWHERE: Final = range(300, 400)
_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class DeliveryAttempt(Struct, frozen=True, kw_only=True):
    """One attempt to deliver a webhook, and its answer."""

    status: int | None = None  # None if there was no answer
    reason: str | None = None  # why there was none
    wait: int | None = None  # the seconds that the answer asked for

    @property
    def is_delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return self.status in _TAKEN

    @property
    def is_gone(self) -> bool:
        """Whether the address takes no webhooks any more."""
        return self.status == HTTPStatus.GONE

    @property
    def asked_seconds(self) -> int | None:
        """How many seconds the receiver asked us to wait."""
        if self.wait is None or self.status not in _BUSY:
            return None
        return min(self.wait, MOST_ASKED_SECONDS)

    @property
    def failure(self) -> str | None:
        """Why it was not delivered, in our own words."""
        if self.is_delivered or self.status is None:
            return self.reason
        if self.status in _ELSEWHERE:
            return f"it answered {self.status}, and redirects are not followed"
        return f"it answered {self.status}"


class DeliverySchedule:
    """Decides when a delivery is tried again, and how long a receiver that fails is paused."""

    def __init__(self, schedule: Sequence[float], ids: Ids) -> None:
        """`schedule` holds the seconds before each attempt; the first attempt is made at once."""
        self._schedule = tuple(schedule)
        self._ids = ids
        longest = max(self._schedule)
        self._first_pause = min(FIRST_PAUSE_SECONDS, *self._schedule[1:2], longest)
        self._most_pause = min(MOST_PAUSE_SECONDS, longest)
        self._lasts_us = int((sum(self._schedule) * (1 + JITTER) + GRACE_SECONDS) * SECOND_US)

    def outcome(self, stored: StoredDelivery, attempt: DeliveryAttempt, now: int) -> Outcome:
        """What is noted of an attempt; `stored` is as it was before."""
        if attempt.is_delivered or attempt.is_gone:
            return Outcome(
                state="dead" if attempt.is_gone else "delivered",
                now=now,
                status=attempt.status,
                reason=attempt.failure,
                gone=attempt.is_gone,
            )
        due = self._due(stored, attempt, now)
        return Outcome(
            state="dead" if due is None else "pending",
            now=now,
            due=due or 0,
            status=attempt.status,
            reason=attempt.failure,
            pause_until=now + int(self._pause(stored, attempt) * SECOND_US),
        )

    def _due(self, stored: StoredDelivery, attempt: DeliveryAttempt, now: int) -> int | None:
        """When it is tried again; None if never."""
        made = stored.attempts + 1
        if made >= len(self._schedule):
            return None
        seconds = self._schedule[made] * (1 + JITTER * (2 * self._ids.fraction() - 1))
        due = now + int(max(seconds, attempt.asked_seconds or 0) * SECOND_US)
        begun = stored.created if stored.replayed is None else stored.replayed
        return None if due > begun + self._lasts_us else due

    def _pause(self, stored: StoredDelivery, attempt: DeliveryAttempt) -> float:
        """For how many seconds its receiver is paused."""
        if attempt.asked_seconds is not None:
            return attempt.asked_seconds
        doubled = self._first_pause * (1 << min(stored.failures, _MOST_DOUBLED))
        return min(doubled, self._most_pause)
