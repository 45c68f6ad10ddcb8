"""All dialects, in one tuple.

Law. There is one list, and a gateway is assembled with it or with another one. The first has the
words for everything that belongs to no other.
"""

from typing import Final

from carnet.wire import openai, samvad
from carnet.wire.dialect import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (openai.DIALECT, samvad.DIALECT)
