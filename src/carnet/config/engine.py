"""The `[engine]` section: the agent loop, where it is served, and the model that it asks."""

import re
from typing import Annotated, Final

from msgspec import Struct

from carnet.config import readers as read
from carnet.config.readers import SecretRef, ValueReader
from carnet.core.people.address import parse_handle
from carnet.errors import AddressInvalid

IN_PROCESS = "inprocess"


_ADDRESS: Final = re.compile(r"http://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}", re.ASCII)


def _listening() -> ValueReader:
    """Where to listen: http://HOST:PORT, or nowhere."""

    def check(value: str) -> str:
        if value != IN_PROCESS and not _ADDRESS.fullmatch(value):
            raise ValueError
        return value

    return read.text_reader(f'an address such as "http://127.0.0.1:8701", or {IN_PROCESS}', check)


def _targets() -> ValueReader:
    """Functions, each as `module:function`, and agents, each as `@name@domain`."""

    def check(value: str) -> str:
        if not value.startswith("@"):
            if not read.TARGET.fullmatch(value):
                raise ValueError
            return value
        try:
            return str(parse_handle(value))
        except AddressInvalid:
            raise ValueError from None

    return read.many('functions or agents, such as "tools:read_page" or "@x@b.example"', check)


class EngineSettings(Struct, frozen=True, kw_only=True):
    """The `[engine]` section."""

    listen: Annotated[
        str,
        _listening(),
        "Where 'carnet engine' listens, such as http://127.0.0.1:8701; inprocess for nowhere.",
    ] = IN_PROCESS
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
        "What the model may use: functions as module:function, beside carnet.toml; agents as @x@y.",
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
