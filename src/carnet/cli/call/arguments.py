"""The words of `carnet call` after its address: what to say, and what goes into a skill.

    carnet call echo "hello there"
    carnet call agent://globex.example skill=translate text="good day" to=fr formal:=true

Law 1. `name=value` is text, `name:=value` is JSON. One word alone, without a skill, is what to say.
Law 2. `skill=NAME` names the skill, and so does --skill; two of them are refused. A field of that
       name is written as JSON.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from carnet.errors import UsageInvalid

_FIELD: Final = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)(?P<json>:?)=(?P<value>.*)", re.ASCII | re.DOTALL
)
_SKILL: Final = "skill"


class CallInput(Struct, frozen=True, kw_only=True):
    """What a command line says to an agent."""

    text: str | None = None
    skill: str | None = None
    fields: dict[str, Any] = {}

    @property
    def payload(self) -> dict[str, Any]:
        """What goes into a skill; plain text is its field `text`."""
        spoken = {} if self.text is None else {"text": self.text}
        return {**spoken, **self.fields}


def read_words(words: Sequence[str], skill: str | None) -> CallInput:
    """Read the words; `skill` is that of the option."""
    if len(words) == 1 and skill is None and not words[0].startswith(f"{_SKILL}="):
        return CallInput(text=_text(words[0]))
    texts: list[str] = []
    fields: dict[str, Any] = {}
    skills = [] if skill is None else [skill]
    for word in words:
        match = _FIELD.fullmatch(word)
        if match is None:
            texts.append(_text(word))
        elif match["name"] == _SKILL and not match["json"]:
            skills.append(match["value"])
        else:
            fields[match["name"]] = _value(match)
    _refuse_several(skills)
    if len(texts) > 1:
        raise UsageInvalid(
            reason=f"There is more than one text: '{texts[0]}' and '{texts[1]}'.",
            fix="Put what is to be said in quotes, and fields as name=value or name:=JSON.",
        )
    named = skills[0] if skills else None
    given = CallInput(text=texts[0] if texts else None, skill=named or None, fields=fields)
    _refuse_half(given)
    return given


def _refuse_several(skills: Sequence[str]) -> None:
    if len(skills) > 1:
        raise UsageInvalid(
            reason=f"There is more than one skill: '{skills[0]}' and '{skills[1]}'.",
            fix=f"Name one. A field of that name is written as JSON: skill:='\"{skills[1]}\"'.",
        )


def _refuse_half(given: CallInput) -> None:
    if given.fields and given.skill is None:
        raise UsageInvalid(
            reason="There are fields, and no skill to give them to.",
            fix="Name it: skill=NAME or --skill NAME. 'carnet agents inspect URL' shows which "
            "there are.",
        )
    if given.text is None and given.skill is None:
        raise UsageInvalid(
            reason="There is nothing to say.",
            fix='Give a text in quotes, or a skill: skill=NAME name=value. "-" reads the text '
            "from standard input.",
        )


def _text(word: str) -> str:
    return sys.stdin.read() if word == "-" else word


def _value(match: re.Match[str]) -> Any:
    if not match["json"]:
        return match["value"]
    try:
        return msgspec.json.decode(match["value"])
    except msgspec.DecodeError:
        raise UsageInvalid(
            reason=f"The value of '{match['name']}' is no JSON.",
            fix=f"Write {match['name']}=TEXT for text, or JSON such as {match['name']}:=3.",
        ) from None
