"""What is kept of a task so that it can run later: sealed, and readable by whoever runs it.

Law 1. The sealed call of one turn opens for that turn alone.
Law 2. The name of the quota that counts the task stands before it, in the clear: the quota gets
       back what the task took also when the call cannot be opened any more. So it does when the
       task has waited for an answer.
"""

from collections.abc import Iterable
from typing import Final, final

from msgspec import Struct
from msgspec.structs import asdict

from carnet.ports.calls.tasks import ListedTask, TaskClaim
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
    auth_sealed: bytes | None = None  # of its callback


class SealedListedTask(ListedTask, frozen=True, kw_only=True):
    """A task that runs at once, with the secret of its callback sealed."""

    key_id: str
    auth_sealed: bytes | None = None


CALLBACK: Final = (
    *("turn", "url", "dialect", "created", "name", "token", "auth_sealed", "key_id"),
)
TASK: Final = ("turn", "id", "sender", "skill", "context", "updated")


def task_row(turn: int, task: TaskClaim | ListedTask, now: int) -> Row:
    """The row of a task that begins, as TASK has it."""
    return (turn, task.id, task.sender, task.skill, task.context, now)


class WaitingRows(Struct, frozen=True):
    """What is written of turns that are to run later, a list of rows for each table."""

    tasks: list[Row]  # as TASK has them
    calls: list[Row]  # turn, sealed, key_id
    callbacks: list[Row]  # as CALLBACK has them
    ranks: list[Row]  # rank, turn
    listed: list[Row]  # turns that run at once and are tasks, as TASK has them

    def add(self, turn: int, claim: TurnClaim, task: TaskClaim, rank: int) -> None:
        """Add a task that begins to wait."""
        if not isinstance(task, SealedTask):
            raise TypeError("the call of a task is sealed before it is stored")
        self.tasks.append(task_row(turn, task, claim.now))
        self.calls.append((turn, task.call_bytes, task.key_id))
        self.ranks.append((rank, turn))
        self._add_callback(turn, claim, task)

    def list(self, turn: int, claim: TurnClaim, task: ListedTask) -> None:
        """Add a task that runs at once."""
        self.listed.append((turn, task.id, task.sender, task.skill, task.context, claim.now))
        if task.callback is not None:
            if not isinstance(task, SealedListedTask):
                raise TypeError("the secret of a callback is sealed before it is stored")
            self._add_callback(turn, claim, task)

    def _add_callback(
        self, turn: int, claim: TurnClaim, task: SealedTask | SealedListedTask
    ) -> None:
        wish = task.callback
        if wish is not None:
            sealed = (task.auth_sealed, None if task.auth_sealed is None else task.key_id)
            of_call = (wish.dialect or claim.admitted.dialect, claim.now)
            self.callbacks.append((turn, wish.url, *of_call, wish.name, wish.token, *sealed))


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
            context=task.context,
            key_id=self._key_id,
            auth_sealed=self._sealed_word(task),
        )

    def seal_listed(self, task: ListedTask) -> SealedListedTask:
        """A task that runs at once, with the secret of its callback sealed."""
        return SealedListedTask(
            **asdict(task), key_id=self._key_id, auth_sealed=self._sealed_word(task)
        )

    def _sealed_word(self, task: TaskClaim | ListedTask) -> bytes | None:
        wish = task.callback
        if wish is None or wish.authorization is None:
            return None
        return self.seal_word(wish.authorization.reveal(), task.id)[0]

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
