"""What is kept of an admitted call so that it can run later, perhaps in another process.

Law 1. `read_sealed_call(write_sealed_call(x)) == x`, and the former form is read as well. What was
       not written here is not read: an unknown form, field or type is refused as a whole.
Law 2. The bytes may hold a credential. The store seals them before it writes them, and removes them
       when the call has ended; nothing else may see them.
Law 3. A deadline is kept by the wall clock: the monotonic clock begins anew with each process.
"""

from typing import Any, Final, TypedDict

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from carnet.core.call import Admitted, Ask, Call, CallbackWish, Target, call_of
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Message, Role
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import Caller, Payer, Secret
from carnet.core.people.proof import Document, Spending
from carnet.errors import Internal

FORM: Final = 2
FORMER: Final = 1


class Later(Struct, frozen=True, kw_only=True):
    """What makes a task of a call: it is accepted now and runs later."""

    id: str  # of a new one; who repeats the call is told the id that it has
    sender: str  # the identity that signed
    quota: str  # that counts the unfinished tasks of the sender
    callback: CallbackWish | None = None


class KeptBudget(TypedDict, total=False):
    """The fields of a budget in what is kept."""

    budget: Spending
    limits: Spending


class SealedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An admitted call without its record: what the store seals, and opens to run it."""

    form: int = FORM
    admitted: Admitted  # its carnets are without a deadline: see `deadline`
    budget: Spending | None = None  # what is left for what is called for it
    deadline: float | None = None  # seconds since the epoch, by the wall clock
    # What it was given, of which that is left. Not written where nothing is spent of it: the build
    # before this field, of which a replica may still run, refuses what it does not know.
    limits: Spending | UnsetType | None = UNSET

    def call(
        self, target: Target, record: Turn, *, task: str, deadline: float | None = None
    ) -> Call:
        """The call as it was admitted.

        Args:
            target: Whom it is for.
            record: The attempt that is to run.
            task: The id of the task that it is.
            deadline: When it must have ended, by the monotonic clock.
        """
        allowance = None
        if self.budget is not None:
            allowance = Allowance(self.limits or self.budget)
            allowance.narrow(self.budget)
        return call_of(
            _until(replace(self.admitted, agent=record.agent), deadline),
            target,
            record,
            allowance=allowance,
            task=task,
        )


class _FormerMessage(Struct, frozen=True):
    role: Role
    content: str
    name: str | None = None


class _FormerAsk(Struct, frozen=True, kw_only=True):
    messages: tuple[_FormerMessage, ...]
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    body: dict[str, Any] | None = None
    skill: str | None = None
    payload: dict[str, Any] | None = None

    def ask(self) -> Ask:
        """The same with messages in parts."""
        return Ask(
            messages=tuple(
                Message(former.role, (former.content,), former.name) for former in self.messages
            ),
            stream=self.stream,
            include_usage=self.include_usage,
            max_tokens=self.max_tokens,
            body=self.body,
            skill=self.skill,
            payload=self.payload,
        )


class _Former(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first form: every field by itself."""

    form: int
    ask: _FormerAsk
    carnet: Carnet
    caller: Caller
    payer: Payer
    onward: Carnet | None = None
    document: Document | None = None
    budget: Spending | None = None
    set_aside: int = 0
    credential: Secret | None = None
    reserve: int = 0
    delegation: Delegation | None = None
    callback: str | None = None
    quota: str | None = None
    task_quota: str | None = field(default=None, name="task_purse")
    deadline: float | None = None


def _until(admitted: Admitted, deadline: float | None) -> Admitted:
    onward = admitted.onward
    return replace(
        admitted,
        carnet=replace(admitted.carnet, deadline=deadline),
        onward=None if onward is None else replace(onward, deadline=deadline),
    )


def _reveal(value: object) -> str:
    """Write a credential: these bytes, and no others, may hold it."""
    if isinstance(value, Secret):
        return value.reveal()
    raise NotImplementedError(type(value).__name__)


def _hide(kind: type, value: object) -> Secret:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise ValueError(f"no {kind.__name__}")  # which the decoder tells as an error of its own


class _Form(Struct):
    form: int


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=_reveal)
_form: Final = msgspec.msgpack.Decoder(_Form)
_decoder: Final = msgspec.msgpack.Decoder(SealedCall, dec_hook=_hide)
_former: Final = msgspec.msgpack.Decoder(_Former, dec_hook=_hide)


def sealed_call_of(call: Call, spent: int, released: int = 0) -> SealedCall:
    """What is kept of a call that waits for an answer, of which so much has been spent.

    `released` is what it reserves no more, as it is asked for again.
    """
    kept = replace(
        call.admitted,
        reserve=max(call.reserve - spent - released, 0),
        set_aside=max(call.set_aside - spent, 1) if call.set_aside else 0,  # 0: it is not bounded
    )
    return SealedCall(admitted=kept, **budget_of(call.allowance))


def budget_of(allowance: Allowance | None) -> KeptBudget:
    """What is kept of a budget: what is left, and what was given where that is something else."""
    if allowance is None:
        return {}
    left, given = allowance.left(), allowance.given
    return {"budget": left} if given == left else {"budget": left, "limits": given}


def write_sealed_call(sealed_call: SealedCall) -> bytes:
    """The bytes that are kept. They are to be sealed."""
    return _encoder.encode(replace(sealed_call, admitted=_until(sealed_call.admitted, None)))


def read_sealed_call(data: bytes) -> SealedCall:
    """The call that was kept, in this form or the former one.

    Raises Internal for what is none of ours.
    """
    try:
        form = _form.decode(data).form
        if form == FORM:
            return _decoder.decode(data)
        if form == FORMER:
            return _read_former(_former.decode(data))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Internal(f"the sealed call of a task cannot be read: {error}") from None
    raise Internal(f"the sealed call of a task has form {form}, not {FORM}")


def _read_former(former: _Former) -> SealedCall:
    """The agent is that of the record: the first form did not hold it, nor the dialect."""
    admitted = Admitted(
        agent="",
        ask=former.ask.ask(),
        carnet=former.carnet,
        caller=former.caller,
        payer=former.payer,
        dialect="openai" if former.caller.standing is None else "samvad",
        onward=former.onward,
        document=former.document,
        set_aside=former.set_aside,
        credential=former.credential,
        reserve=former.reserve,
        delegation=former.delegation,
        callback=former.callback,
        quota=former.quota,
        task_quota=former.task_quota,
    )
    return SealedCall(admitted=admitted, budget=former.budget, deadline=former.deadline)
