"""What is left of the tokens of a turn, as the loop of one of its streams asks for it."""

from carnet.errors import BudgetExceeded
from carnet.ports.engine.loop import LoopTokens


class StreamTokens:
    """The tokens of a turn for one stream, whose loop knows of no other."""

    def __init__(self, tokens: LoopTokens) -> None:
        """What is known before it begins is no part of what its loop has used."""
        self._tokens = tokens
        self._before = tokens.known

    @property
    def known(self) -> int:
        """How many the turn has used."""
        return self._tokens.known

    @property
    def short(self) -> BudgetExceeded | None:
        """Why a model was not asked again."""
        return self._tokens.short

    def count(self, tokens: int) -> None:
        """So many more were noted."""
        self._tokens.count(tokens)

    async def left(self, used: int, /) -> int | None:
        """How many are left where the stream has used so many."""
        return await self._tokens.left(self._before + used)
