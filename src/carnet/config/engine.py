"""The `[engine]` section: the agent loop, where it is served, and the model that it asks."""

import re
from pathlib import Path
from typing import Annotated, Final

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader

IN_PROCESS = "inprocess"
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


def _targets() -> ValueReader:
    """Functions, each as `module:function`."""

    def check(value: str) -> str:
        if not read.TARGET.fullmatch(value):
            raise ValueError
        return value

    return read.many('functions, such as "tools:read_page"', check)


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
    url: Annotated[str | None, read.url(), "The model's provider, such as .../v1."] = None
    model: Annotated[str | None, read.text(), "The model to ask for there."] = None
    api_key: Annotated[SecretRef | None, read.secret(), "How we authenticate to it."] = None
    timeout: Annotated[float, read.seconds(), "Seconds that one answer of it may take."] = 600.0
    retries: Annotated[
        int, read.whole(0, 3), "How many further requests one answer of it may need."
    ] = 2
    tools: Annotated[
        tuple[str, ...],
        _targets(),
        "What the model may use: functions as module:function, found beside carnet.toml.",
    ] = ()
    ask_before: Annotated[
        tuple[str, ...],
        read.members(),
        'The tools that somebody must approve before each use; ["*"] is all of them.',
    ] = ()
    max_iterations: Annotated[
        int | None,
        read.whole(1),
        "How often the model is asked in one answer; by default until it has ended.",
    ] = None
    max_tokens: Annotated[
        int | None,
        read.whole(1, 2**53 - 1),
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
