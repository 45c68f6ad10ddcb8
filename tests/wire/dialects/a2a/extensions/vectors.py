"""What extensions look like on the wire: one file each in `tests/vectors/a2a_extensions`.

A case of `inbound` is the metadata of a caller's message, one of `answer` that of somebody we
called; `gives` is what is read. One of `broken` is `refused`, or passed over and shown as broken.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from carnet.wire.dialects.a2a.extensions import read_answer, read_inbound
from carnet.wire.grammar.headers import Headers

FOLDER = Path(__file__).parents[4] / "vectors" / "a2a_extensions"
LAST_DEPTH = 3


def cases(kind: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """All cases of a kind: by their name, the extension and the case."""
    found = {}
    for path in sorted(FOLDER.glob("*.json")):
        for case in json.loads(path.read_text()).get(kind, []):
            found[f"{path.stem} {case.get('side', '')}: {case['what']}"] = (path.stem, case)
    return found


def claimed(metadata: object) -> dict[str, Any]:
    """What a message of a caller says, as plain values."""
    found = read_inbound(metadata, None, headers=Headers([]), last_depth=LAST_DEPTH)
    return plain(found)


def answered(metadata: object) -> dict[str, Any]:
    """What an answer says, as plain values."""
    return plain(read_answer(metadata, currency="credits"))


def plain(value: object) -> dict[str, Any]:
    """A value without what it does not say."""
    built: dict[str, Any] = msgspec.to_builtins(value, enc_hook=str)  # a secret as ***
    return {name: _known(each) for name, each in built.items() if each not in (None, [], {})}


def _known(value: object) -> Any:
    if isinstance(value, dict):
        kept = {name: _known(each) for name, each in value.items()}
        kept.pop("is_recorded", None)  # which no request says
        return {name: each for name, each in kept.items() if each is not None}
    return [_known(each) for each in value] if isinstance(value, list | tuple) else value
