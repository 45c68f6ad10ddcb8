"""What is recorded: an area is a file below `recorded`, made by one or more functions."""

from collections.abc import Callable

from tests.exchanges.cases import carnets, chains, chat, later, pages, signed
from tests.exchanges.stage import Stage

AREAS: dict[str, tuple[Callable[[Stage], None], ...]] = {
    "chat": (chat.answers,),
    "skills": (chat.skills,),
    "refused": (chat.refused,),
    "tokens": (chat.tokens,),
    "published": (pages.published, pages.operators),
    "edge": (pages.edge,),
    "chains": (chains.depths,),
    "payers": (chains.payers,),
    "repeats": (chains.repeats,),
    "runs": (pages.runs,),
    "tasks": (later.by_token,),
    "signed": (signed.answers,),
    "signatures": (signed.refused,),
    "delegations": (signed.delegated,),
    "signed_tasks": (later.by_signature,),
    "documents": (carnets.documents,),
    "peers": (carnets.to_globex,),
    "elsewhere": (carnets.elsewhere,),
}
