"""What is kept of an admitted call so that it can run later, perhaps in another process.

Law 1. `read_papers(write_papers(x)) == x`. What was not written here is not read: another form, an
       unknown field or a wrong type is refused as a whole.
Law 2. Papers may hold a credential. Whoever keeps the bytes seals them, and removes them when the
       call has ended; nothing else may see them.
Law 3. A deadline is kept by the wall clock: the clock that is never set begins anew with each
       process.
"""

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carnet.core.allowance import Allowance
from carnet.core.call import Ask, Call
from carnet.core.carnet import Carnet
from carnet.core.delegation import Delegation
from carnet.core.identity import Caller, Payer
from carnet.core.proof import Document, Spending
from carnet.core.secret import Secret
from carnet.core.turn import Turn
from carnet.errors import Internal

FORM: Final = 1


class Later(Struct, frozen=True, kw_only=True):
    """What makes a task of a call: it is accepted now and runs later."""

    id: str  # of a new one; who repeats the call is told the id that it has
    sender: str  # the identity that signed
    purse: str  # that counts the unfinished tasks of the sender
    callback: str | None = None


class Papers(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An admitted call without its record."""

    form: int = FORM
    ask: Ask
    carnet: Carnet  # without a deadline, as is `onward`: see `deadline`
    caller: Caller
    payer: Payer
    onward: Carnet | None = None
    document: Document | None = None
    budget: Spending | None = None  # what is left for what is called for it
    set_aside: int = 0
    credential: str | None = None
    reserve: int = 0
    delegation: Delegation | None = None
    callback: str | None = None
    quota: str | None = None
    task_purse: str | None = None
    deadline: float | None = None  # seconds since the epoch, by the wall clock

    def call(self, record: Turn, *, task: str, deadline: float | None = None) -> Call:
        """The call as it was admitted.

        Args:
            record: The attempt that is to run.
            task: The id of the task that it is.
            deadline: When it must have ended, by the clock that is never set.
        """
        onward = self.onward
        return Call(
            agent=record.agent,
            ask=self.ask,
            carnet=replace(self.carnet, deadline=deadline),
            caller=self.caller,
            payer=self.payer,
            record=record,
            onward=None if onward is None else replace(onward, deadline=deadline),
            document=self.document,
            allowance=None if self.budget is None else Allowance(self.budget),
            set_aside=self.set_aside,
            credential=None if self.credential is None else Secret(self.credential),
            reserve=self.reserve,
            delegation=self.delegation,
            task=task,
            callback=self.callback,
            quota=self.quota,
            task_purse=self.task_purse,
        )


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Papers)


def write_papers(papers: Papers) -> bytes:
    """The bytes that are kept. They are to be sealed."""
    carnet, onward = papers.carnet, papers.onward
    return _encoder.encode(
        replace(
            papers,
            carnet=replace(carnet, deadline=None),
            onward=None if onward is None else replace(onward, deadline=None),
        )
    )


def read_papers(data: bytes) -> Papers:
    """The papers that were kept. Raises Internal for what is none of ours."""
    try:
        papers = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Internal(f"the papers of a task cannot be read: {error}") from None
    if papers.form != FORM:
        raise Internal(f"the papers of a task have form {papers.form}, not {FORM}")
    return papers
