"""The agent loop: `[engine]`, where it is served, and `[models]`, whom it may ask.

Law. A system message in a file is read when whoever it instructs is built, and has a bound.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader, Wrong
from carnet.config.tools import tool_names
from carnet.core.money.budget import Ceilings, ceilings_of
from carnet.errors import ConfigInvalid

IN_PROCESS = "inprocess"
MOST_TOKENS: Final = 2**53 - 1
MOST_SYSTEM_BYTES: Final = 256 * 1024
MODEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)
MODEL_RETRIES: Final = 3
UNIX: Final = "unix:"  # what a file to listen at begins with
# The host under which the one file of an engine is asked. No name can be looked up so.
HOST: Final = "engine.invalid"

_ADDRESS: Final = re.compile(r"http://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}", re.ASCII)
_FILE: Final = re.compile(rf"{UNIX}[^\0]+")


def _listening() -> ValueReader:
    """Where to listen: http://HOST:PORT, the file of a socket, or nowhere."""

    def check(value: str) -> str:
        if value != IN_PROCESS and not _ADDRESS.fullmatch(value) and not _FILE.fullmatch(value):
            raise ValueError
        return value

    words = f'an address such as "http://127.0.0.1:8701", "{UNIX}PATH" or {IN_PROCESS}'
    return read.text_reader(words, check)


def _check_model_name(value: str) -> str:
    if not MODEL_NAME.fullmatch(value):
        raise ValueError
    return value


SystemText = Annotated[str | None, read.text(), "openai, engine: the system message put first."]
SystemFile = Annotated[
    str | None, read.text(), "openai, engine: a file with it, beside carnet.toml."
]
CallerSystem = Annotated[
    bool,
    read.truth(),
    "openai, engine: whether callers' system messages pass, after the one of 'system'; "
    "without one they do.",
]


class ModelSettings(Struct, frozen=True, kw_only=True):
    """One `[models.NAME]` section."""

    url: Annotated[str, read.url(), "Where its provider is, such as http://127.0.0.1:8080/v1."]
    kind: Annotated[
        Literal["openai", "anthropic"],
        read.one_of("openai", "anthropic"),
        "How it is asked: over chat completions, or Anthropic's messages.",
    ] = "openai"
    model: Annotated[
        str | None, read.text(), "What its provider calls it; by default the name of the section."
    ] = None
    api_key: Annotated[SecretRef | None, read.secret(), "How we authenticate to it."] = None
    timeout: Annotated[float, read.seconds(), "Seconds that one answer of it may take."] = 600.0
    retries: Annotated[
        int,
        read.whole(0, MODEL_RETRIES),
        "How many further requests one answer of it may need; 0 for none.",
    ] = 2
    fallbacks: Annotated[
        tuple[str, ...],
        read.many("names of [models]", _check_model_name),
        "Which of [models] are asked, one after the other, where it cannot be.",
    ] = ()
    window: Annotated[
        int | None,
        read.whole(1, MOST_TOKENS),
        "Tokens that it can read; what was said first is left out beyond it. By default no bound.",
    ] = None
    overflow: Annotated[
        Literal["trim", "summary"],
        read.one_of("trim", "summary"),
        "What becomes of what it cannot read: left out, or summed up by the model itself first.",
    ] = "trim"
    max_output: Annotated[
        int | None,
        read.whole(1, MOST_TOKENS),
        "Tokens of one answer at the most; by default as its provider has it, anthropic: 4096.",
    ] = None
    tool_calls: Annotated[
        Literal["native", "schema"],
        read.one_of("native", "schema"),
        "How it says which tools it wants: as its provider has it, or schema, if it knows none.",
    ] = "native"


class EngineSettings(Struct, frozen=True, kw_only=True):
    """The `[engine]` section."""

    listen: Annotated[
        str,
        _listening(),
        "Where the loop is asked, such as http://127.0.0.1:8701 or unix:PATH; inprocess for "
        "nowhere.",
    ] = IN_PROCESS
    serve: Annotated[
        bool,
        read.truth(),
        "Whether the gateway's process listens there, for others; else 'carnet engine' does.",
    ] = False
    model: Annotated[
        str | None,
        read.text(),
        "Which of [models] is asked, where an agent names none; left out where there is one.",
    ] = None
    tools: Annotated[
        tuple[str, ...],
        tool_names(),
        "What the model may use: names of [tools], memory, functions as module:function, agents.",
    ] = ()
    ask_before: Annotated[
        tuple[str, ...],
        read.members(),
        'The tools that somebody must approve before each use; ["*"] is all of them.',
    ] = ()
    memory_approval: Annotated[
        Literal["never", "always", "write"],
        read.one_of("never", "always", "write"),
        "When somebody must approve a use of the tools of memory: write is when it is written.",
    ] = "write"
    memory_starter: Annotated[
        str | None,
        read.text(),
        "A file, beside carnet.toml, that a memory begins with as its AGENT.md; by default ours.",
    ] = None
    max_iterations: Annotated[
        int | None,
        read.whole(1),
        "How often the model is asked in one answer; by default until it has ended.",
    ] = None
    max_tokens: Annotated[
        int | None,
        read.whole(1, MOST_TOKENS),
        "Tokens, in and out, after which an answer ends; by default no bound.",
    ] = None

    @property
    def is_in_process(self) -> bool:
        """Whether agents are answered by a loop in the process of their gateway."""
        return self.listen == IN_PROCESS or self.serve

    @property
    def asked_at(self) -> str:
        """The URL under which a gateway asks it."""
        return f"http://{HOST}" if self.listen.startswith(UNIX) else self.listen

    def socket(self, base: Path) -> Path | None:
        """The file to listen at, beside carnet.toml; None where it is none."""
        return base / self.listen.removeprefix(UNIX) if self.listen.startswith(UNIX) else None

    def sockets(self, base: Path) -> dict[str, str]:
        """The files that stand behind names of hosts, for who asks it."""
        file = self.socket(base)
        return {} if file is None else {HOST: str(file)}


def budgets() -> ValueReader:
    """Named budgets, as a table."""
    expects = "a table such as {turns = 8, tool_calls = 20, tool_calls_NAME = 3}"
    names = "turns, tool_calls, tool_calls_NAME of a tool, and wall_clock_seconds"

    def check(value: object) -> Ceilings:
        if not isinstance(value, dict):
            raise Wrong(f"should be {expects}")
        try:
            return ceilings_of(value)
        except ValueError as error:
            raise Wrong(f"should be {expects}, but {error}. There are {names}") from None

    def read_text(value: str) -> Ceilings:
        try:
            return check(tomllib.loads(f"value = {value}")["value"])
        except tomllib.TOMLDecodeError:
            raise Wrong(f"should be {expects}") from None

    return ValueReader(expects, check, read_text)


AgentBudgets = Annotated[
    Ceilings,
    budgets(),
    "engine: named budgets of one answer, such as {turns = 8, tool_calls = 20}.",
]


def chosen_model(
    own: str | None, engine: EngineSettings, models: Mapping[str, ModelSettings]
) -> str | None:
    """The name of the model that a loop asks: an agent's own, that of [engine], or the only one."""
    named = own or engine.model
    return next(iter(models)) if named is None and len(models) == 1 else named


def no_model(models: Mapping[str, ModelSettings]) -> str:
    """Why a loop has no model to ask."""
    if not models:
        return "the agent loop needs a model to ask: write a section [models.NAME] with its url"
    return f"which model is asked? Name one in [engine] model: {', '.join(models)}"


def read_system(text: str | None, file: str | None, base: Path, *, key: str) -> str | None:
    """The system message of an agent: as it is written, or what is in its file."""
    if file is None:
        return text
    path = base / file
    try:
        if path.stat().st_size > MOST_SYSTEM_BYTES:
            reason = f"{path} has more than {MOST_SYSTEM_BYTES} bytes"
            raise ConfigInvalid(key=key, reason=reason)
        found = path.read_bytes().decode().strip()
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        raise ConfigInvalid(key=key, reason=f"{path} cannot be read: {why}") from None
    except UnicodeDecodeError:
        raise ConfigInvalid(key=key, reason=f"{path} is not UTF-8 text") from None
    if not found or "\0" in found:
        raise ConfigInvalid(key=key, reason=f"{path} says nothing, or not as text")
    return found
