"""What is kept of a task so that it can run later: sealed, and readable by whoever runs it.

Law 1. The sealed call of one turn opens for that turn alone.
Law 2. The name of the quota that counts the task stands before it, in the clear: the quota gets
       back what the task took also when the call cannot be opened any more. So it does when the
       task has waited for an answer.
"""

from collections.abc import Iterable
from typing import Final, final

from msgspec import Struct

from carnet.ports.calls.tasks import TaskClaim
from carnet.ports.calls.turns import TASKS, TurnClaim
from carnet.stores.database import Row
from carnet.stores.secrets.seal import Seal
from carnet.stores.secrets.secrets_file import Keys

_LABEL: Final = "task "
_OF_TASK: Final = "callback "
_AFTER_QUOTA: Final = b"\x00"


class SealedTask(TaskClaim, frozen=True, kw_only=True):
    """A task whose call is sealed."""

    key_id: str  # of the secrets file


class WaitingRows(Struct, frozen=True):
    """What is written of turns that are to run later, a list of rows for each table."""

    tasks: list[Row]  # turn, id, sender, skill
    calls: list[Row]  # turn, sealed, key_id
    callbacks: list[Row]  # turn, url, dialect, created
    ranks: list[Row]  # rank, turn

    def add(self, turn: int, claim: TurnClaim, task: TaskClaim, rank: int) -> None:
        """Add a task that begins to wait."""
        if not isinstance(task, SealedTask):
            raise TypeError("the call of a task is sealed before it is stored")
        self.tasks.append((turn, task.id, task.sender, task.skill))
        self.calls.append((turn, task.call_bytes, task.key_id))
        self.ranks.append((rank, turn))
        if task.callback is not None:
            self.callbacks.append((turn, task.callback, claim.admitted.dialect, claim.now))


@final
class CallSeal:
    """Seals and opens calls with the key of one store."""

    __slots__ = ("_key_id", "_seal")

    def __init__(self, keys: Keys) -> None:
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)

    def seal(self, claim: TurnClaim, task: TaskClaim) -> SealedTask:
        """The task of a claim, with its call sealed for its turn."""
        head = head_of(quota.name for quota in claim.quotas)
        return SealedTask(
            id=task.id,
            sender=task.sender,
            skill=task.skill,
            callback=task.callback,
            call_bytes=head + self._seal.seal_bytes(task.call_bytes, label=call_label(claim.key)),
            key_id=self._key_id,
        )

    def open(self, sealed: bytes, turn_key: bytes) -> bytes:
        """The bytes of the call again. Raises Unsealable."""
        _, _, call_bytes = sealed.partition(_AFTER_QUOTA)
        return self._seal.open_bytes(call_bytes, label=call_label(turn_key))

    def seal_word(self, word: str, task: str) -> tuple[bytes, str]:
        """A secret that belongs to a task, sealed for it, and the key that it was sealed with."""
        return self._seal.seal(word, label=_OF_TASK + task), self._key_id

    def open_word(self, sealed: bytes, task: str) -> str:
        """It again. Raises Unsealable."""
        return self._seal.open(sealed, label=_OF_TASK + task)


def head_of(quotas: Iterable[str]) -> bytes:
    """What stands before a sealed call: the quota that counts the task, if one of these does."""
    counting = [quota for quota in quotas if quota.startswith(TASKS)]
    return "".join(counting[:1]).encode() + _AFTER_QUOTA


def quota_of(sealed: bytes) -> str | None:
    """The quota that counts a task, whoever sealed its call; None if there is none to be read."""
    try:
        quota = sealed.partition(_AFTER_QUOTA)[0].decode()
    except UnicodeDecodeError:  # the row is damaged: it must not keep others from being run
        return None
    return quota if quota.startswith(TASKS) else None


def call_label(turn_key: bytes) -> str:
    """What the call of a turn is sealed for."""
    return _LABEL + turn_key.hex()
