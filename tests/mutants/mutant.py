"""What a mutant is: a small change of the source that takes one behaviour away.

Law 1. Its text stands once in the file it names; with what takes its place the source still
       imports and serves, so that only the behaviour is gone.
Law 2. The tests of its row must go red. `tests` names those of them that are enough, where the
       others take long.
"""

from msgspec import Struct


class Mutant(Struct, frozen=True):
    """One change, and the row whose tests must notice it."""

    row: str
    file: str  # below src/carnet; looked for elsewhere if the text has moved
    text: str
    instead: str
    tests: tuple[str, ...] = ()  # functions; all that the row names if none is given
