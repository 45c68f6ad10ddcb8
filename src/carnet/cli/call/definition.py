"""A conversation in a file of its own: Python that makes one, or TOML that says it.

Law. What is wrong with a file is told with its key, as of a configuration.
"""

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carnet.config.sources import nearest
from carnet.errors import UsageInvalid

if TYPE_CHECKING:
    from carnet.runtime.dialogue.definition import Conversation

TOML = ".toml"
_EXAMPLE = '"panel", [researcher, critic], max_turns=6'
_FIX = "See docs/conversations.md for what such a file holds."


def read_definition(path: Path, name: str | None) -> "tuple[Conversation, str | None]":
    """The conversation of a file, and what it begins with if the file says so."""
    if not path.is_file():
        what = f"{path} is a folder" if path.is_dir() else f"There is no file {path}"
        raise UsageInvalid(reason=f"{what}.", fix=_FIX)
    if path.suffix == TOML:
        if name is not None:
            raise UsageInvalid(
                reason=f"{path.name} holds one conversation, and none called '{name}'.",
                fix=f"Leave ':{name}' out.",
            )
        return _from_toml(path)
    return _from_module(path, name), None


def _from_module(path: Path, name: str | None) -> "Conversation":
    from carnet.runtime.dialogue.definition import Conversation

    found = {key: each for key, each in _run(path).items() if isinstance(each, Conversation)}
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    if not found:
        raise UsageInvalid(
            reason=f"{path.name} has no carnet.Conversation.",
            fix=f"Such as: panel = carnet.Conversation({_EXAMPLE})",
        )
    if name is None:
        reason = f"{path.name} has several conversations: {', '.join(found)}."
        raise UsageInvalid(reason=reason, fix=f"Say which one: {path.name}:{next(iter(found))}")
    raise UsageInvalid(
        reason=f"{path.name} has no conversation called '{name}'.", fix=nearest(name, found)
    )


def _run(path: Path) -> dict[str, Any]:
    """What a module of Python makes."""
    import runpy

    from carnet.cli.agent_log import in_a_line

    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path), run_name=path.stem)
    except (Exception, SystemExit) as error:
        reason = f"{path.name} cannot be run: {in_a_line(error)}"
        raise UsageInvalid(reason=sentence(reason), fix=_FIX) from error


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
        raise UsageInvalid(reason=sentence(f"{path.name}: {wrong}"), fix=_FIX) from None
    return conversation_in(path.stem, given), given.seed


def sentence(text: str) -> str:
    """A text with the stop that a sentence has."""
    return text if text.endswith((".", "?")) else f"{text}."
