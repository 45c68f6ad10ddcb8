"""The signature of a request (RFC 9421), in the part of it that we admit.

What it must cover is for the dialects to say, and whose key it is for the guards: here a request is
read, its base is built, and a signature is written.

Law 1. Exactly one signature, of 64 bytes, in the form of the RFC; anything else is
       `SignatureInvalid`, and none at all `SignatureMissing`.
Law 2. What is verified is the literal text that was received: nothing is written anew first.
Law 3. `read` finds in what `write` wrote the same components and parameters, and `base` gives the
       bytes that were signed.
Law 4. The base depends on everything that is covered: any other method, path, query, authority,
       field or parameter gives another base, or none.
Law 5. Components have no parameters here (`;sf`, `;bs`, `;tr`, `;req`, ...), stand once and are at
       most 32.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from carnet.errors import SignatureInvalid, SignatureMissing
from carnet.wire.crypto.components import DERIVED, Request, Uncoverable, field, join
from carnet.wire.crypto.ed25519 import SIGNATURE_BYTES
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import (
    Bare,
    InnerList,
    Item,
    Member,
    StructuredInvalid,
    read_entries,
    write_bare,
    write_bytes,
    write_string,
)

__all__ = ["Presented", "Request", "base", "bases", "read", "write"]

ALGORITHM: Final = "ed25519"
MAX_COMPONENTS: Final = 32
MAX_BYTES: Final = 4096

_NAME: Final = re.compile(r"@[a-z-]+|[a-z0-9!#$%&'*+.^_`|~-]+")
_NUMBERS: Final = ("created", "expires")
_TEXTS: Final = ("keyid", "nonce", "alg", "tag")

# The form that this program and the SDKs write, which one look suffices for.
_WORD: Final = r'"([ !#-\[\]-~]*)"'
_PLAIN_NAME: Final = r"(?:@[a-z-]+|[a-z0-9-]+)"
_PLAIN_INPUT: Final = re.compile(
    r"([a-z][a-z0-9_-]*)="
    rf'(\("({_PLAIN_NAME}(?:" "{_PLAIN_NAME})*)"\)'
    rf';keyid={_WORD};alg="ed25519";created=([0-9]{{1,15}})'
    rf"(?:;expires=([0-9]{{1,15}}))?(?:;nonce={_WORD})?(?:;tag={_WORD})?)"
)
_PLAIN_SIGNATURE: Final = re.compile(r"([a-z][a-z0-9_-]*)=:([A-Za-z0-9+/]{85}[AQgw]==):")
_OF_PATH: Final = frozenset({"@target-uri", "@request-target"})  # beside "@path" itself


class Presented(Struct, frozen=True, kw_only=True):
    """A signature as a request presents it: read, and not believed."""

    label: str
    components: tuple[str, ...]
    created: int | None = None
    expires: int | None = None
    keyid: str | None = None
    nonce: str | None = None
    alg: str | None = None
    tag: str | None = None
    text: str  # what stood after "label=", letter by letter
    signature: bytes


# ------------------------------------------------------------------------------------- reading


def read(headers: Headers) -> Presented:
    """The one signature of a request."""
    given = _only(headers, "signature-input")
    signature = _only(headers, "signature")
    return _read_plain(given, signature) or _read_any(given, signature)


def _only(headers: Headers, name: str) -> str:
    match headers.get_all(name):
        case [line] if line and len(line) <= MAX_BYTES:
            return line
        case lines if any(lines):
            raise SignatureInvalid(f"{name} stands on several lines or is too long")
    raise SignatureMissing


def _read_plain(given: str, signature: str) -> Presented | None:
    """The signature if it has the usual form; None for all others, right or wrong."""
    found = _read_input(given)
    value = _PLAIN_SIGNATURE.fullmatch(signature)
    if found is None or value is None or found.label != value[1]:
        return None
    return replace(found, signature=a2b_base64(value[2]))


@lru_cache(maxsize=256)  # of the seed's form it is the same for all that one signs in a second
def _read_input(given: str) -> Presented | None:
    """What the usual form of an input says, still without the signature."""
    found = _PLAIN_INPUT.fullmatch(given)
    if found is None:
        return None
    label, text, names, keyid, created, expires, nonce, tag = found.groups()
    components = tuple(names.split('" "'))
    if len(components) > MAX_COMPONENTS or len(set(components)) != len(components):
        return None
    return Presented(
        label=label,
        components=components,
        created=int(created),
        expires=None if expires is None else int(expires),
        keyid=keyid,
        nonce=nonce,
        alg=ALGORITHM,
        tag=tag,
        text=text,
        signature=b"",
    )


def _read_any(given: str, signature: str) -> Presented:
    """The signature in any form that the grammar has, or the reason why it is none."""
    try:
        inputs = read_entries(given, unique=True)
        values = read_entries(signature, unique=True)
    except StructuredInvalid as error:
        _refuse(str(error))
    if len(inputs) != 1 or inputs.keys() != values.keys():
        _refuse("there is not exactly one signature under one label")
    [(label, entry)] = inputs.items()
    covered = entry.member
    if not isinstance(covered, InnerList):
        _refuse("the input of the signature is not a list of components")
    return Presented(
        label=label,
        components=_read_components(covered),
        text=entry.text,
        signature=_read_value(values[label].member),
        **_read_parameters(covered.parameters),  # type: ignore[arg-type]  # each was checked by its name
    )


def _read_components(covered: InnerList) -> tuple[str, ...]:
    names = tuple(item.value for item in covered.items)
    if len(names) > MAX_COMPONENTS or len(set(names)) != len(names):
        _refuse("too many components, or one of them twice")
    if any(item.parameters for item in covered.items):
        _refuse("a component has a parameter")
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        _refuse("a component is not a name in lower case")
    return names  # type: ignore[return-value]  # all are texts, as was checked


def _read_parameters(parameters: dict[str, Bare]) -> dict[str, Bare]:
    for name, value in parameters.items():
        if not (
            (name in _NUMBERS and type(value) is int) or (name in _TEXTS and type(value) is str)
        ):
            _refuse("the signature has a parameter that is not defined, or of the wrong kind")
    if parameters.get("alg", ALGORITHM) != ALGORITHM:
        _refuse("the signature says that it is made with another algorithm")
    return parameters


def _read_value(member: Member) -> bytes:
    value = member.value if isinstance(member, Item) and not member.parameters else None
    if not isinstance(value, bytes) or len(value) != SIGNATURE_BYTES:
        _refuse("the signature is not 64 bytes")
    return value


def _refuse(reason: str) -> NoReturn:
    raise SignatureInvalid(reason)


# ------------------------------------------------------------------------------------ the base


def base(
    presented: Presented, request: Request, *, path: str | None = None, newline: bool = False
) -> bytes:
    """The bytes that the signature must hold for.

    Args:
        presented: What `read` found.
        request: The request that it came with.
        path: Another path than that of the request, where a gateway serves an agent below one.
        newline: As SAMVAD does it: the last line ends too, and the method is in upper case.
    """
    paths = (request.path if path is None else path,)
    return bases(presented, request, paths=paths, newline=newline)[0]


def bases(
    presented: Presented, request: Request, *, paths: Sequence[str], newline: bool
) -> list[bytes]:
    """The same for each of several paths, any of which the request may have been signed for."""
    try:
        return _build(presented.components, presented.text, request, paths, newline=newline)
    except Uncoverable as error:
        _refuse(f"a component {error}")


def _build(
    names: Sequence[str], text: str, request: Request, paths: Sequence[str], *, newline: bool
) -> list[bytes]:
    if newline and not request.method.isupper():
        request = replace(request, method=request.method.upper())
    end = b"\n" if newline else b""
    resolved: dict[str, str] = {}  # what does not depend on the path is resolved once
    built: list[bytes] = []
    for path in paths:
        lines: list[str] = []
        for name in names:
            if name == "@path":
                value = path or "/"
            elif name in _OF_PATH:
                value = _resolve(name, replace(request, path=path))
            elif name in resolved:
                value = resolved[name]
            else:
                value = resolved[name] = _resolve(name, request)
            lines += (f'"{name}": {value}',)
        built += (join(lines, text) + end,)
    return built


def _resolve(name: str, request: Request) -> str:
    if name in DERIVED:
        return DERIVED[name](request)
    if name[:1] == "@":
        raise Uncoverable("is not known")
    return field(request.headers, name)


# ------------------------------------------------------------------------------------- writing


def write(
    request: Request,
    *,
    components: Sequence[str],
    keyid: str,
    created: int,
    sign: Callable[[bytes], bytes],
    label: str = "sig1",
    nonce: str | None = None,
    tag: str | None = None,
    expires: int | None = None,
    alg: str | None = ALGORITHM,
    newline: bool = False,
) -> dict[str, str]:
    """Sign a request: the two header fields to add to it.

    A component that the request does not have, or that may not be signed, is a mistake of ours:
    `Uncoverable`, a ValueError.

    Args:
        request: As it will be sent, its `content-digest` included.
        components: What is covered, in this order.
        keyid: The name of the key in our card.
        created: Now, in whole seconds since the epoch.
        sign: Gives the 64 bytes of the signature.
        label: The name of the signature in both fields.
        nonce: Where the profile wants one.
        tag: What the signature is for.
        expires: When it ends, in whole seconds since the epoch.
        alg: The name of the algorithm; None leaves it out.
        newline: As SAMVAD does it, see `base`.
    """
    text = _opening(tuple(components), keyid, alg, created, expires)
    if nonce is not None:
        text = f"{text};nonce={write_string(nonce)}"
    if tag is not None:
        text = f"{text};tag={write_string(tag)}"
    (signed,) = _build(components, text, request, (request.path,), newline=newline)
    signature = write_bytes(sign(signed))
    return {"signature-input": f"{label}={text}", "signature": f"{label}={signature}"}


@lru_cache(maxsize=256)  # the same few headers are signed again and again, many in a second
def _opening(
    components: tuple[str, ...], keyid: str, alg: str | None, created: int, expires: int | None
) -> str:
    """What an input says before the nonce and the tag."""
    listed = " ".join([write_string(name) for name in components])
    given = (("keyid", keyid), ("alg", alg), ("created", created), ("expires", expires))
    parameters = [f";{name}={write_bare(value)}" for name, value in given if value is not None]
    return f"({listed}){''.join(parameters)}"
