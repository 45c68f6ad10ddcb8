"""The contract between a gateway and an agent loop as checks from outside: for anybody's loop.

    probe.py      asks a loop, and keeps what came
    verdict.py    a check, and what became of it
    refusals.py   what is refused before a stream begins
    streams.py    what a stream holds, of all that came
    kit.py        all of it, one after the other
    front.py      the other side: a loop that looks at what a gateway asks

Law 1. Nothing of the loop is known but its address and a credential: what cannot be seen from there
       is not judged, and what did not happen is `unseen`, not right.
Law 2. A broken check says what was expected and what was seen.
"""

from carnet.testing.conform.kit import CHECKS, conform
from carnet.testing.conform.verdict import Verdict

__all__ = ["CHECKS", "Verdict", "conform"]
