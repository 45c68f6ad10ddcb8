"""The components of RFC 9421: its published examples line by line, and what cannot be covered."""

import hmac
import json
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from carnet.wire.crypto import ed25519
from carnet.wire.crypto.components import (
    KINDS,
    Message,
    Request,
    Response,
    Uncoverable,
    base,
    resolve,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import InnerList, Item, read_entries, read_item, write_item

PUBLISHED = json.loads((Path(__file__).parent / "rfc9421.json").read_text())
VECTORS = PUBLISHED["vectors"]
KEYS = PUBLISHED["keys"]


def fields(*lines: tuple[str, str]) -> Headers:
    return Headers([(name.lower().encode(), value.encode("latin-1")) for name, value in lines])


def request(*lines: tuple[str, str], target: str = "/", **facts: Any) -> Request:
    path, mark, query = target.partition("?")
    facts = {"method": "GET", "authority": "www.example.com", **facts}
    return Request(path=path, query=query if mark else None, headers=fields(*lines), **facts)


# ---------------------------------------------------------------------------- published examples


def message_of(facts: dict[str, Any]) -> Message:
    headers = fields(*facts["headers"])
    if "status" in facts:
        return Response(status=facts["status"], headers=headers)
    return Request(**{**facts, "headers": headers})


def published(vector: dict[str, Any]) -> tuple[InnerList, str, Message, bytes]:
    entry = read_entries(vector["input"], unique=True)[vector["label"]]
    value = read_entries(vector["signature"], unique=True)[vector["label"]].member
    message = message_of(vector["message"])
    if isinstance(message, Response) and "request" in vector:
        related = message_of(vector["request"])
        assert isinstance(related, Request)
        message = Response(status=message.status, headers=message.headers, request=related)
    assert isinstance(entry.member, InnerList)
    assert isinstance(value, Item)
    assert isinstance(value.value, bytes)
    return entry.member, entry.text, message, value.value


def verifies(key: dict[str, str], message: bytes, signature: bytes) -> bool:
    """What the algorithms of the RFC say, by another library; HMAC by the standard one."""
    if "secret" in key:
        return hmac.digest(b64decode(key["secret"]), message, sha256) == signature
    public = load_pem_public_key(key["public"].encode())
    try:
        match public:
            case rsa.RSAPublicKey() if key["alg"] == "rsa-pss-sha512":
                pss = padding.PSS(padding.MGF1(hashes.SHA512()), 64)
                public.verify(signature, message, pss, hashes.SHA512())
            case rsa.RSAPublicKey():
                public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
            case ec.EllipticCurvePublicKey():
                halves = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
                public.verify(encode_dss_signature(*halves), message, ec.ECDSA(hashes.SHA256()))
            case Ed25519PublicKey():
                return ed25519.holds(public.public_bytes_raw(), message, signature)
            case _:
                raise AssertionError(key["alg"])
    except InvalidSignature:
        return False
    return True


def test_all_nineteen_examples_are_here() -> None:
    assert len(VECTORS) == 19
    assert sum(vector["valid"] for vector in VECTORS) == 17


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["section"])
def test_the_published_examples_have_our_base_and_their_signature(vector: dict[str, Any]) -> None:
    covered, text, message, signature = published(vector)
    built = base(covered, text, message)
    assert built.decode().split("\n") == vector["base"]
    assert verifies(KEYS[vector["key"]], built, signature) is vector["valid"]
    touched = bytes([signature[0] ^ 1]) + signature[1:]
    assert not verifies(KEYS[vector["key"]], built, touched)


def test_the_published_signatures_of_our_algorithm_come_out() -> None:
    seed = b64decode(KEYS["test-key-ed25519"]["seed"].replace("-", "+").replace("_", "/") + "=")
    made = 0
    for vector in VECTORS:
        if vector["key"] == "test-key-ed25519" and vector["valid"]:
            covered, text, message, signature = published(vector)
            assert ed25519.sign(seed, base(covered, text, message)) == signature
            made += 1
    assert made == 5


DICT = " a=1,    b=2;x=1;y=2,   c=(a   b   c)"
BIG = "/parameters?var=this%20is%20a%20big%0Amultiline%20value&bar=with+plus+whitespace"

EXAMPLES: list[tuple[str, Message, list[str]]] = [
    ("2.1 empty", request(("X-Empty-Header", "")), ['"x-empty-header": ']),
    (
        "2.1 fields",
        request(
            ("Host", "www.example.com"),
            ("Date", "Tue, 20 Apr 2021 02:07:56 GMT"),
            ("X-OWS-Header", "   Leading and trailing whitespace.   "),
            ("Cache-Control", "max-age=60"),
            ("Cache-Control", "   must-revalidate"),
            ("Example-Dict", DICT),
        ),
        [
            '"host": www.example.com',
            '"date": Tue, 20 Apr 2021 02:07:56 GMT',
            '"x-ows-header": Leading and trailing whitespace.',
            '"cache-control": max-age=60, must-revalidate',
            '"example-dict": a=1,    b=2;x=1;y=2,   c=(a   b   c)',
        ],
    ),
    (
        "2.1.1",
        request(("Example-Dict", DICT)),
        ['"example-dict";sf: a=1, b=2;x=1;y=2, c=(a b c)'],
    ),
    (
        "2.1.2",
        request(("Example-Dict", " a=1, b=2;x=1;y=2, c=(a   b    c), d")),
        [
            '"example-dict";key="a": 1',
            '"example-dict";key="d": ?1',
            '"example-dict";key="b": 2;x=1;y=2',
            '"example-dict";key="c": (a b c)',
        ],
    ),
    (
        "2.1.3 two lines",
        request(("Example-Header", "value, with, lots"), ("Example-Header", "of, commas")),
        [
            '"example-header": value, with, lots, of, commas',
            '"example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:',
        ],
    ),
    (
        "2.1.3 one line",
        request(("Example-Header", "value, with, lots, of, commas")),
        ['"example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHMsIG9mLCBjb21tYXM=:'],
    ),
    (
        "2.2",
        request(method="POST", target="/path?param=value"),
        [
            '"@method": POST',
            '"@target-uri": https://www.example.com/path?param=value',
            '"@authority": www.example.com',
            '"@request-target": /path?param=value',
            '"@path": /path',
            '"@query": ?param=value',
        ],
    ),
    ("2.2.4", request(scheme="HTTP"), ['"@scheme": http']),
    (
        "2.2.7",
        request(target="/path?param=value&foo=bar&baz=bat%2Dman"),
        ['"@query": ?param=value&foo=bar&baz=bat%2Dman'],
    ),
    ("2.2.7 bare", request(target="/path?queryString"), ['"@query": ?queryString']),
    ("2.2.7 absent", request(target="/path"), ['"@query": ?']),
    (
        "2.2.8",
        request(target="/path?param=value&foo=bar&baz=batman&qux="),
        [
            '"@query-param";name="baz": batman',
            '"@query-param";name="qux": ',
            '"@query-param";name="param": value',
        ],
    ),
    (
        "2.2.8 encoded",
        request(target=f"{BIG}&fa%C3%A7ade%22%3A%20=something"),
        [
            '"@query-param";name="var": this%20is%20a%20big%0Amultiline%20value',
            '"@query-param";name="bar": with%20plus%20whitespace',
            '"@query-param";name="fa%C3%A7ade%22%3A%20": something',
        ],
    ),
    ("2.2.9", Response(status=200, headers=fields()), ['"@status": 200']),
    (
        "trailers",
        Response(status=200, headers=fields(), trailers=fields(("Expires", "never"))),
        ['"expires";tr: never'],
    ),
    (
        "a list and an item",
        request(("A-List", "1,2"), ("An-Item", "1.50;a")),
        ['"a-list";sf: 1, 2', '"an-item";sf: 1.5;a'],
    ),
    (
        "authority",
        request(authority="WWW.Example.com:443", target=""),
        [
            '"@authority": www.example.com',
            '"@path": /',
            '"@request-target": /',
            '"@target-uri": https://WWW.Example.com:443/',
        ],
    ),
    (
        "2.2.5 absolute",
        request(target="https://www.example.com/path?param=value"),
        ['"@request-target": https://www.example.com/path?param=value'],
    ),
    ("2.2.5 authority", request(target="a.example:80"), ['"@request-target": a.example:80']),
    ("2.2.5 asterisk", request(method="OPTIONS", target="*"), ['"@request-target": *']),
    (
        "another port",
        request(authority="a.example:80", target="/?"),
        ['"@authority": a.example:80', '"@request-target": /?', '"@query": ?'],
    ),
]


@pytest.mark.parametrize(
    ("name", "message", "lines"), EXAMPLES, ids=[name for name, *_ in EXAMPLES]
)
def test_a_component_has_this_value(name: str, message: Message, lines: list[str]) -> None:
    kinds = {"example-dict": "dictionary", "a-list": "list", "an-item": "item", **KINDS}
    for line in lines:
        component, _, value = line.partition(": ")
        item = read_item(component)
        assert resolve(item, message, kinds) == value, name
        built = base(InnerList((item,)), "()", message, kinds)
        assert built.decode() == f'{write_item(item)}: {value}\n"@signature-params": ()'


# -------------------------------------------------------------------------- what is not covered

ANSWER = Response(
    status=200,
    headers=fields(("date", "now"), ("content-digest", "sha-256=:AA==:")),
    request=request(("a", "1"), target="/p?x=1&x=2&y=1"),
)


@pytest.mark.parametrize(
    ("component", "message"),
    [
        ('"absent"', ANSWER),
        ('"absent";bs', ANSWER),
        ('"absent";sf', ANSWER),
        ('"absent";key="a"', ANSWER),
        ('"date";tr', ANSWER),
        ('"date";sf', ANSWER),
        ('"date";sf=1', ANSWER),
        ('"date";key', ANSWER),
        ('"date";key=a', ANSWER),
        ('"date";key="a"', ANSWER),
        ('"date";bs;sf', ANSWER),
        ('"date";bs;key="a"', ANSWER),
        ('"date";name="a"', ANSWER),
        ('"date";unknown', ANSWER),
        ('"date";req', ANSWER),
        ('"content-digest";key="sha-512"', ANSWER),
        ('"content-digest";sf', Response(status=1, headers=fields(("content-digest", "=")))),
        ('"Date"', ANSWER),
        ("date", ANSWER),
        ("1", ANSWER),
        ('"@signature-params"', ANSWER),
        ('"@method"', ANSWER),
        ('"@status";req', ANSWER),
        ('"@unknown"', ANSWER),
        ('"@unknown";req', ANSWER),
        ('"@method";req=?0', ANSWER),
        ('"@method";sf;req', ANSWER),
        ('"@query-param";req', ANSWER),
        ('"@query-param";name="z";req', ANSWER),
        ('"@query-param";name="x";req', ANSWER),
        ('"@query-param";name=y;req', ANSWER),
        ('"@status"', request()),
        ('"a";req', request(("a", "1"))),
        ('"@method";req', Response(status=200, headers=fields())),
        ('"@query-param";name="x"', request()),
    ],
)
def test_what_a_message_does_not_have_cannot_be_covered(component: str, message: Message) -> None:
    with pytest.raises(Uncoverable):
        resolve(read_item(component), message)
    with pytest.raises(Uncoverable):
        base(InnerList((read_item(component),)), "()", message)


def test_the_request_of_an_answer_can_be_covered() -> None:
    assert resolve(read_item('"@query-param";name="y";req'), ANSWER) == "1"
    assert resolve(read_item('"a";req'), ANSWER) == "1"


def test_a_component_stands_once_whatever_the_order_of_its_parameters() -> None:
    covered = InnerList((read_item('"a";req;bs'), read_item('"a";req')))
    assert base(covered, "()", ANSWER).count(b"\n") == 2
    for one, two in (('"date"', '"date"'), ('"a";req;bs', '"a";bs;req')):
        with pytest.raises(Uncoverable):
            base(InnerList((read_item(one), read_item(two))), "()", ANSWER)


@pytest.mark.parametrize(
    "value", ['x\n"@method": GET', "x\r", "x\r\n y", "a\x00b", "\x7f", "é", "\x1b[1m"]
)
def test_no_value_can_forge_a_line(value: str) -> None:
    with pytest.raises(Uncoverable):
        base(InnerList((Item("a"),)), "()", request(("a", value)))
    with pytest.raises(Uncoverable):
        base(InnerList((Item("@path"),)), "()", request(target=f"/{value}"))
    with pytest.raises(Uncoverable):
        base(InnerList(()), f"(){value}", request())


def test_a_tab_inside_a_value_is_kept() -> None:
    assert base(InnerList((Item("a"),)), "()", request(("a", "x\ty"))).startswith(b'"a": x\ty\n')
