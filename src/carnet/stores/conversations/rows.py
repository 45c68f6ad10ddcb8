"""The rows of conversations and messages, as values."""

from typing import Final

from carnet.ports.calls.conversations import KeptConversation, KeptMessage
from carnet.stores.database import Row

_CONVERSATION: Final = (
    *("n", "id", "owner", "agent", "title", "cause", "created", "updated", "head", "answering"),
    *("unread", "archived", "size", "tokens_in", "tokens_out", "cost", "deleted"),
)
_MESSAGE: Final = (
    *("n", "id", "conversation", "parent", "role", "author", "parts", "metadata", "state", "run"),
    *("turn", "waits", "code", "client_id", "tokens_in", "tokens_out", "cost", "created", "ended"),
)
CONVERSATION_COLUMNS: Final = ", ".join([f"c.{name}" for name in _CONVERSATION])
MESSAGE_COLUMNS: Final = ", ".join([f"m.{name}" for name in _MESSAGE])
CONVERSATION_WIDTH: Final = len(_CONVERSATION)
DELETED: Final = _CONVERSATION.index("deleted")
_SPELLED: Final = {"cause": "trigger"}


def read_conversation(row: Row) -> KeptConversation:
    """A row that begins with CONVERSATION_COLUMNS."""
    named = {_SPELLED.get(name, name): row[at] for at, name in enumerate(_CONVERSATION)}
    del named["deleted"]
    return KeptConversation(**named)


def read_message(row: Row) -> KeptMessage:
    """A row of MESSAGE_COLUMNS."""
    named = dict(zip(_MESSAGE, row, strict=True))
    named["waits"] = bool(named["waits"])
    return KeptMessage(**named)
