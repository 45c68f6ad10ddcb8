"""A conversation in a file of its own: Python that makes one, or TOML that says it.

Law. What is wrong with a file is told with its key, as of a configuration.
"""

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carnet.errors import UsageInvalid

if TYPE_CHECKING:
    from carnet.runtime.dialogue.definition import Conversation

TOML = ".toml"
_FIX = "See docs/conversations.md for what such a file holds."


def read_definition(path: Path, name: str | None) -> "tuple[Conversation, str | None]":
    """The conversation of a file, and what it begins with if the file says so."""
    if not path.is_file():
        raise UsageInvalid(reason=f"There is no file {path}.", fix=_FIX)
    if path.suffix == TOML:
        return _from_toml(path)
    return _from_module(path, name), None


def _from_module(path: Path, name: str | None) -> "Conversation":
    from carnet.runtime.dialogue.definition import Conversation

    found = {key: each for key, each in _run(path).items() if isinstance(each, Conversation)}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    names = ", ".join(found) or "none"
    wanted = "Say which one: FILE:NAME" if name is None else f"There is no '{name}'"
    raise UsageInvalid(reason=f"The conversations of {path.name}: {names}.", fix=f"{wanted}.")


def _run(path: Path) -> dict[str, Any]:
    """What a module of Python makes."""
    import runpy

    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        reason = f"{path.name} cannot be run: {type(error).__name__}: {error}"
        raise UsageInvalid(reason=f"{reason}.", fix=_FIX) from error


def _from_toml(path: Path) -> "tuple[Conversation, str | None]":
    from carnet.assembly.agents.dialogues import conversation_in
    from carnet.config.dialogue.participants import read_conversation
    from carnet.config.readers import Wrong

    try:
        tree = tomllib.loads(path.read_text())
        given = read_conversation(tree)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageInvalid(reason=f"{path.name} is not valid TOML: {error}.", fix=_FIX) from None
    except Wrong as wrong:
        raise UsageInvalid(reason=f"{path.name}: {wrong}.", fix=_FIX) from None
    return conversation_in(path.stem, given), given.seed
