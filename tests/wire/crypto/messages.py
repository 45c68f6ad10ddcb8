"""Random signed requests, and `make signatures`: a million of their bits flipped, one at a time.

A flipped request must be refused wherever the bit was: in the method, the authority, the path, the
query, a covered field, the body, or the signature itself.
"""

import sys
from collections.abc import Iterator
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from carnet.errors import Refused
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.grammar.headers import Headers

FLIPS = 1_000_000

SEED = b"\x07" * 32
PUBLIC = ed25519.public_of(SEED)
SAMVAD = ("@method", "@path", "content-digest")

_VISIBLE = "".join(map(chr, range(0x20, 0x7F)))
_IN_PATHS = "abcXYZ019-._~!$&'()*+,;=:@/"
_NAMES = ("content-type", "x-tangle-runid", "x-tangle-depth", "carnet", "accept", "x-empty")
_sign = ed25519.signer(SEED)

Line = tuple[str, str]


class Draft(Struct, frozen=True, kw_only=True):
    """A request to be signed, and how."""

    method: str
    scheme: str
    authority: str
    path: str
    query: str | None
    lines: tuple[Line, ...]  # its fields, some of them on several lines
    body: bytes
    covered: tuple[str, ...]
    keyid: str
    created: int
    expires: int | None = None
    nonce: str | None = None
    tag: str | None = None
    newline: bool = False

    def request(self) -> Request:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in self.lines]
        return Request(
            method=self.method,
            scheme=self.scheme,
            authority=self.authority,
            path=self.path,
            query=self.query,
            headers=Headers(raw),
        )

    def signed(self) -> "Draft":
        """The same with the two fields of our signature."""
        added = signatures.write(
            self.request(),
            components=self.covered,
            keyid=self.keyid,
            created=self.created,
            expires=self.expires,
            nonce=self.nonce,
            tag=self.tag,
            newline=self.newline,
            sign=_sign,
        )
        return replace(self, lines=(*self.lines, *added.items()))

    def holds(self) -> bool:
        """Whether it passes all that is judged of a signature and a body, as a gateway does it."""
        request = self.request()
        try:
            presented = signatures.read(request.headers)
            digests.check(", ".join(request.headers.get_all("content-digest")), self.body)
            base = signatures.base(presented, request, newline=self.newline)
        except Refused:
            return False
        return ed25519.holds(PUBLIC, base, presented.signature)


def draw(random: Random) -> Draft:
    """A request that says anything, and covers most of it."""
    body = random.randbytes(random.randrange(40))
    lines = [("content-digest", digests.write(body))]
    for name in random.sample(_NAMES, random.randrange(len(_NAMES))):
        times = random.choice((1, 1, 1, 2, 3))
        lines += [(name, _text(random, _VISIBLE, 24).strip()) for _ in range(times)]
    random.shuffle(lines)
    query = random.choice((None, "", _text(random, _IN_PATHS, 12)))
    covered = ["@method", "@authority", "@path", "@query", "content-digest"]
    covered += sorted({name for name, _ in lines} - {"content-digest"})
    covered += random.sample(("@scheme", "@target-uri", "@request-target"), random.randrange(4))
    random.shuffle(covered)
    return Draft(
        method=random.choice(("POST", "GET", "PUT", "OPTIONS", "X-ODD")),
        scheme=random.choice(("https", "http")),
        authority=random.choice(("a.example", "A.Example:443", "b.example:80", "127.0.0.1:8800")),
        path=f"/{_text(random, _IN_PATHS, 20)}",
        query=query,
        lines=tuple(lines),
        body=body,
        covered=tuple(covered),
        keyid=_text(random, _VISIBLE, 10),
        created=random.randrange(1, 1_700_000_000),
        expires=random.choice((None, 4_000_000_000)),
        nonce=random.choice((None, _text(random, _VISIBLE, 16))),
        tag=random.choice((None, "carnet")),
    )


def draw_samvad(random: Random) -> Draft:
    """A request as the SDKs of SAMVAD sign it."""
    draft = draw(random)
    return Draft(
        method="POST",
        scheme="https",
        authority="a.example",
        path=draft.path,
        query=None,
        lines=tuple(line for line in draft.lines if line[0] == "content-digest"),
        body=draft.body,
        covered=SAMVAD,
        keyid=draft.keyid,
        created=draft.created,
        newline=True,
    )


def _text(random: Random, alphabet: str, most: int) -> str:
    return "".join(random.choices(alphabet, k=random.randrange(most)))


def flip_all(draft: Draft) -> Iterator[tuple[str, Draft]]:
    """Every request that differs from this signed one in a single bit, and where it does.

    Left out is what is the same request: the case of a host, which means nothing, the case of the
    method where SAMVAD writes it large, and what the signature does not cover.
    """
    if not draft.newline:
        yield from _flip_part(draft, "authority", but_case=True)
        yield from _flip_part(draft, "query")
    yield from _flip_part(draft, "method", but_case=draft.newline)
    yield from _flip_part(draft, "path")
    for flipped in _flip(draft.body.decode("latin-1")):
        yield "body", replace(draft, body=flipped.encode("latin-1"))
    for index, (name, value) in enumerate(draft.lines):
        for flipped in _flip(value):
            lines = (*draft.lines[:index], (name, flipped), *draft.lines[index + 1 :])
            yield name, replace(draft, lines=lines)


def _flip_part(draft: Draft, part: str, *, but_case: bool = False) -> Iterator[tuple[str, Draft]]:
    for flipped in _flip(getattr(draft, part) or "", but_case=but_case):
        yield part, replace(draft, **{part: flipped})


def _flip(text: str, *, but_case: bool = False) -> Iterator[str]:
    for place, character in enumerate(text):
        for bit in range(8):
            other = chr(ord(character) ^ 1 << bit)
            if not (but_case and other.lower() == character.lower()):
                yield f"{text[:place]}{other}{text[place + 1 :]}"


def main(wanted: int) -> int:
    """Flip so many bits, and say how many of the flipped requests were taken."""
    random, flips, messages = Random(9421), 0, 0  # noqa: S311
    while flips < wanted:
        for drawn in (draw(random), draw_samvad(random)):
            draft = drawn.signed()
            if not draft.holds():
                print(f"message {messages} is refused as it was signed: {draft}")  # noqa: T201
                return 1
            messages += 1
            for place, flipped in flip_all(draft):
                flips += 1
                if flipped.holds():
                    print(f"taken with a bit of its {place} flipped: {flipped}")  # noqa: T201
                    return 1
    print(f"{flips:,} bits of {messages:,} signed requests flipped, each one refused.")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else FLIPS))
