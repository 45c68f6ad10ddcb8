"""What is not exactly one well-formed signature over the whole request is refused.

A refusal costs the genuine request nothing: it is accepted afterwards, and once.
"""

import hashlib
import hmac
import random
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest

from carnet import errors
from tests.security.support.signing import REPLAY, SignedEdge
from tests.support.signing.signed import SAMVAD, Sender, Signed, b64, digest, listed, sign, unsigned

# The order of the group of Ed25519: adding it to S gives another text of the same signature.
ORDER = 2**252 + 27742317777372353535851937790883648493

Forge = Callable[[Signed], Signed]


def signature(request: Signed) -> bytes:
    return b64decode(request.field("signature").removeprefix("sig1=:").removesuffix(":"))


def resigned(raw: bytes) -> str:
    return f"sig1=:{b64(raw)}:"


def malleated(request: Signed) -> str:
    raw = signature(request)
    scalar = int.from_bytes(raw[32:], "little") + ORDER
    return resigned(raw[:32] + scalar.to_bytes(32, "little"))


def other_tail(request: Signed) -> str:
    """The same bytes to a lenient decoder: the last letter has bits that mean nothing."""
    text = b64(signature(request))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = letters[letters.index(text[-3]) | 1]
    return f"sig1=:{text[:-3]}{last}==:"


def input_of(request: Signed) -> str:
    return request.field("signature-input")


# ------------------------------------------------------------------------------ A01, A02

MISSING: dict[str, Forge] = {
    "neither": lambda r: r.but(without=("signature", "signature-input")),
    "no-signature": lambda r: r.but(without=("signature",)),
    "empty": lambda r: r.but(signature=""),
    "no-input": lambda r: r.but(without=("signature-input",)),
}


@pytest.mark.parametrize("forge", MISSING.values(), ids=MISSING)
def test_without_a_signature_nothing_is_answered(
    edge: SignedEdge, alice: Sender, forge: Forge
) -> None:
    """A01."""
    genuine = edge.message(alice)
    edge.refuses_but_then_accepts(forge(genuine), genuine, errors.SignatureMissing)


NOT_ONE: dict[str, Forge] = {
    "another-label": lambda r: r.but(signature=r.field("signature").replace("sig1", "sig2")),
    "other-labels-both": lambda r: r.but(
        signature=r.field("signature").replace("sig1", "sig2"),
        signature_input=input_of(r).replace("sig1", "sig2"),
    ),
    "two-labels": lambda r: r.but(
        signature=f"{r.field('signature')}, {r.field('signature').replace('sig1', 'sig2')}",
        signature_input=f"{input_of(r)}, {input_of(r).replace('sig1', 'sig2')}",
    ),
    "the-label-twice": lambda r: r.but(
        signature=f"{r.field('signature')}, {r.field('signature')}",
        signature_input=f"{input_of(r)}, {input_of(r)}",
    ),
    "two-in-one-field-only": lambda r: r.but(
        signature=f"{r.field('signature')}, {r.field('signature').replace('sig1', 'sig2')}"
    ),
    "two-fields": lambda r: r.beside(("signature", r.field("signature"))),
    "two-input-fields": lambda r: r.beside(("signature-input", input_of(r))),
    "a-string": lambda r: r.but(signature=f'sig1="{b64(signature(r))}"'),
    "nothing-signed": lambda r: r.but(signature="sig1"),
}


@pytest.mark.parametrize("forge", NOT_ONE.values(), ids=NOT_ONE)
def test_anything_but_one_signature_is_none(edge: SignedEdge, alice: Sender, forge: Forge) -> None:
    """A02."""
    genuine = edge.message(alice)
    edge.refuses_but_then_accepts(forge(genuine), genuine, errors.SignatureInvalid)


# ------------------------------------------------------------------------------ A03, A04, A05


def flipped(body: bytes, place: int) -> bytes:
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


@pytest.mark.parametrize("place", [-2, -5, -10])
def test_a_body_that_was_changed_does_not_match_its_digest(
    edge: SignedEdge, alice: Sender, place: int
) -> None:
    """A03: also by a byte within the text that was asked."""
    genuine = edge.message(alice)
    where = genuine.body.index(b"canary") + 20 + place
    forged = genuine.but(body=flipped(genuine.body, where))
    edge.refuses_but_then_accepts(forged, genuine, errors.DigestMismatch)


def test_space_behind_the_body_is_a_change(edge: SignedEdge, alice: Sender) -> None:
    """A03."""
    genuine = edge.message(alice)
    edge.refuses_but_then_accepts(
        genuine.but(body=genuine.body + b" "), genuine, errors.DigestMismatch
    )


def test_a_new_digest_does_not_help_a_changed_body(edge: SignedEdge, alice: Sender) -> None:
    """A04."""
    genuine = edge.message(alice)
    body = genuine.body.replace(b"canary", b"Canary")
    forged = genuine.but(body=body, content_digest=digest(body))
    edge.refuses_but_then_accepts(forged, genuine, errors.SignatureInvalid)


def _sha512(body: bytes) -> str:
    return f"sha-512=:{b64(hashlib.sha512(body).digest())}:"


def _unused_bits(body: bytes) -> str:
    text = digest(body)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return f"{text[:-3]}{letters[letters.index(text[-3]) | 1]}=:"


DIGESTS: dict[str, Callable[[bytes], str]] = {
    "empty": lambda _: "",
    "two-one-wrong": lambda b: f"{digest(b)}, {digest(b'other')}",
    "two-algorithms-one-wrong": lambda b: f"{digest(b)}, {_sha512(b'other')}",
    "unknown-only": lambda _: f"crc32c=:{b64(b'1234')}:",
    "md5": lambda b: f"md5=:{b64(hashlib.md5(b, usedforsecurity=False).digest())}:",
    "unused-bits": _unused_bits,
    "unpadded": lambda b: digest(b).replace("=:", ":").replace("sha-256:", "sha-256=:"),
    "hex": lambda b: f"sha-256=:{hashlib.sha256(b).hexdigest()}:",
    "a-string": lambda b: digest(b).replace(":", '"'),
    "upper-case": lambda b: digest(b).replace("sha-256", "SHA-256"),
    "short": lambda b: f"sha-256=:{b64(hashlib.sha256(b).digest()[:16])}:",
}


@pytest.mark.parametrize("write", DIGESTS.values(), ids=DIGESTS)
def test_a_digest_that_is_not_one_sha_256_is_refused_even_if_it_is_signed(
    edge: SignedEdge, alice: Sender, write: Callable[[bytes], str]
) -> None:
    """A05."""
    genuine = edge.message(alice)
    forged = sign(alice, genuine.but(content_digest=write(genuine.body)))
    edge.refuses_but_then_accepts(forged, genuine, errors.DigestInvalid)


def test_without_a_digest_nothing_is_answered(edge: SignedEdge, alice: Sender) -> None:
    """A05."""
    genuine = edge.message(alice)
    forged = genuine.but(without=("content-digest",))
    edge.refuses_but_then_accepts(forged, genuine, errors.DigestInvalid)


def test_two_digest_fields_are_refused(edge: SignedEdge, alice: Sender) -> None:
    """A05: whichever of the two a reader would take."""
    genuine = edge.message(alice)
    forged = genuine.beside(("content-digest", digest(b"other")))
    edge.refuses_but_then_accepts(forged, genuine, errors.DigestInvalid)


# ------------------------------------------------------------------------------ A06, A07

COVERAGES = [
    (),
    ("@method",),
    ("@method", "@path"),
    ("@method", "content-digest"),
    ("@path", "content-digest"),
    ("content-digest",),
    ("@method", "@authority", "content-digest"),
    ("@method", "@path", "content-type"),
]


@pytest.mark.parametrize("components", COVERAGES, ids=" ".join)
def test_a_signature_over_less_than_the_request_is_not_enough(
    edge: SignedEdge, alice: Sender, components: tuple[str, ...]
) -> None:
    """A06."""
    genuine = edge.message(alice)
    forged = sign(alice, genuine, components=components)
    edge.refuses_but_then_accepts(forged, genuine, errors.InsufficientCoverage)


UNSIGNED_FIELDS = [
    ("x-tangle-forwarded-depth", "0"),
    ("x-tangle-runid", "conv_1"),
    ("x-tangle-turnid", "conv_1.t0.echo"),
    ("x-tangle-parent-turnid", "conv_1.t0.echo"),
    ("x-tangle-speaker", "echo"),
    ("X-Tangle-Forwarded-Authorization", "Bearer of-somebody"),
    ("x-agents-api-chain-depth", "0"),
    ("x-agents-api-caller-host", "a.example"),
    ("x-actor-id", "admin"),
    ("X-Actor-Permissions", '{"allow":["*"]}'),
    ("carnet", "e30.e30.AA"),
]


@pytest.mark.parametrize("field", UNSIGNED_FIELDS, ids=lambda field: field[0])
def test_a_header_of_chain_or_identity_beside_the_signature_is_refused(
    edge: SignedEdge, alice: Sender, field: tuple[str, str]
) -> None:
    """A07: whatever it says, also if it says nothing new."""
    genuine = edge.message(alice)
    edge.refuses_but_then_accepts(genuine.beside(field), genuine, errors.HeaderNotSigned)


def test_a_trace_context_beside_the_signature_is_no_claim(edge: SignedEdge, alice: Sender) -> None:
    """A07: R9 lets it pass."""
    trace = ("traceparent", f"00-{'ab' * 16}-{'cd' * 8}-01")
    edge.accepts(edge.message(alice).beside(trace, ("x-anything", "else")))


# ------------------------------------------------------------------------------ A19, A20, A22

PARAMETERS = {
    "hmac": ';keyid="k1";alg="hmac-sha256";created={now}',
    "rsa": ';keyid="k1";alg="rsa-pss-sha512";created={now}',
    "ecdsa": ';keyid="k1";alg="ecdsa-p256-sha256";created={now}',
    "none": ';keyid="k1";alg="none";created={now}',
    "upper": ';keyid="k1";alg="Ed25519";created={now}',
    "empty": ';keyid="k1";alg="";created={now}',
    "token": ';keyid="k1";alg=ed25519;created={now}',
    "omitted": ';keyid="k1";created={now}',
}


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_the_algorithm_is_that_of_the_key_whatever_the_signature_says(
    edge: SignedEdge, alice: Sender, parameters: str
) -> None:
    """A19: also if the signature over that very text holds."""
    genuine = edge.message(alice)
    created = input_of(genuine).rpartition("=")[2]
    forged = sign(alice, genuine, parameters=parameters.replace("{now}", created))
    edge.refuses_but_then_accepts(forged, genuine, errors.SignatureInvalid)


@pytest.mark.parametrize("algorithm", ["hmac-sha256", "ed25519"])
def test_a_public_key_is_no_shared_secret(edge: SignedEdge, alice: Sender, algorithm: str) -> None:
    """A20: a code made with the bytes that everybody knows."""
    genuine = edge.message(alice)
    text = input_of(genuine).removeprefix("sig1=").replace("ed25519", algorithm)
    base = (
        f'"@method": POST\n"@path": /agent/message\n'
        f'"content-digest": {genuine.field("content-digest")}\n"@signature-params": {text}\n'
    ).encode()
    for secret in (alice.public_raw, alice.public.encode()):
        code = hmac.digest(secret, base, "sha256")
        for raw in (code, code + code):
            forged = genuine.but(signature_input=f"sig1={text}", signature=resigned(raw))
            edge.refuses(forged, errors.SignatureInvalid)
    edge.accepts(genuine)


FORGED_SIGNATURES: dict[str, Callable[[Signed], str]] = {
    "malleated": malleated,
    "63-bytes": lambda r: resigned(signature(r)[:63]),
    "65-bytes": lambda r: resigned(signature(r) + b"\0"),
    "no-bytes": lambda _: "sig1=::",
    "zeros": lambda _: resigned(bytes(64)),
    "of-small-order": lambda _: resigned(b"\x01" + bytes(63)),
    "unused-bits": other_tail,
    "unpadded": lambda r: resigned(signature(r)).replace("=:", ":").replace("sig1:", "sig1=:"),
    "url-safe": lambda r: f"sig1=:{b64encode(signature(r), b'-_').decode()}_:",
    "space-inside": lambda r: r.field("signature").replace("sig1=:", "sig1=: "),
    "behind-it-more": lambda r: r.field("signature") + "x",
}


@pytest.mark.parametrize("forge", FORGED_SIGNATURES.values(), ids=FORGED_SIGNATURES)
def test_a_signature_has_one_form(
    edge: SignedEdge, alice: Sender, forge: Callable[[Signed], str]
) -> None:
    """A22."""
    genuine = edge.message(alice)
    forged = genuine.but(signature=forge(genuine))
    edge.refuses_but_then_accepts(forged, genuine, errors.SignatureInvalid)


@pytest.mark.parametrize("bit", [0, 7, 100, 255, 256, 400, 503, 511])
def test_no_bit_of_a_signature_can_be_another(edge: SignedEdge, alice: Sender, bit: int) -> None:
    """A22."""
    genuine = edge.message(alice)
    raw = bytearray(signature(genuine))
    raw[bit // 8] ^= 1 << bit % 8
    forged = genuine.but(signature=resigned(bytes(raw)))
    edge.refuses_but_then_accepts(forged, genuine, errors.SignatureInvalid)


# ------------------------------------------------------------------------------ A25, A26

TRICKS = {
    "parameter-twice": ('("@method" "@path" "content-digest")', ';keyid="k1";keyid="k2"'),
    "component-twice": ('("@method" "@path" "content-digest" "@path")', ';keyid="k1"'),
    "upper-case": ('("@method" "@path" "Content-Digest")', ';keyid="k1"'),
    "sf": ('("@method" "@path" "content-digest";sf)', ';keyid="k1"'),
    "bs": ('("@method" "@path" "content-digest";bs)', ';keyid="k1"'),
    "tr": ('("@method" "@path" "content-digest";tr)', ';keyid="k1"'),
    "req": ('("@method";req "@path" "content-digest")', ';keyid="k1"'),
    "key": ('("@method" "@path" "content-digest";key="sha-256")', ';keyid="k1"'),
    "unterminated-string": ('("@method" "@path" "content-digest)', ';keyid="k1"'),
    "unterminated-list": ('("@method" "@path" "content-digest"', ';keyid="k1"'),
    "unknown-derived": ('("@method" "@path" "content-digest" "@fragment")', ';keyid="k1"'),
    "params-in-itself": ('("@method" "@path" "content-digest" "@signature-params")', ';keyid="k1"'),
    "tokens": ("(@method @path content-digest)", ';keyid="k1"'),
    "not-a-list": ('"@method"', ';keyid="k1"'),
    "ten-thousand": (listed(["@method", *(f"x-{n}" for n in range(10_000))]), ';keyid="k1"'),
    "thirty-three": (listed([*SAMVAD, *(f"x-{n}" for n in range(30))]), ';keyid="k1"'),
    "long": ('("@method" "@path" "content-digest")', f';keyid="k1";nonce="{"n" * 4096}"'),
    "an-empty-name": ('("@method" "@path" "content-digest" "")', ';keyid="k1"'),
    "tab": ('("@method"\t"@path" "content-digest")', ';keyid="k1"'),
    "keyid-escape": ('("@method" "@path" "content-digest")', ';keyid="k\\1"'),
}


@pytest.mark.parametrize(("covered", "keyid"), TRICKS.values(), ids=TRICKS)
def test_tricks_with_the_syntax_are_not_read(
    edge: SignedEdge, alice: Sender, covered: str, keyid: str
) -> None:
    """A25: bounded, and one reading alone."""
    genuine = edge.message(alice)
    created = input_of(genuine).rpartition("=")[2]
    forged = genuine.but(signature_input=f'sig1={covered}{keyid};alg="ed25519";created={created}')
    if len(forged.field("signature-input")) > 16_000:  # the edge has said no before
        assert edge.send(forged).status == 431
    else:
        edge.refuses(forged, errors.SignatureInvalid)
    edge.accepts(genuine)


@pytest.mark.parametrize(
    "line",
    [
        b'content-digest: sha-256=:AA==:\n"@method": GET\r\n',
        b"content-digest: sha-256=:AA==:\r\r\n",
        b"content-digest: sha-256=:AA==:\0\r\n",
        b'signature: sig1=:AA==:\n"@method": GET\r\n',
        b"signature-input: sig1=()\n;x\r\n",
    ],
)
def test_a_line_break_inside_a_header_never_reaches_the_signature(
    edge: SignedEdge, alice: Sender, line: bytes
) -> None:
    """A26: refused by the HTTP layer, which closes."""
    genuine = edge.message(alice)
    head, _, body = genuine.raw().partition(b"\r\n\r\n")
    with edge.untouched():
        assert edge.send(head + b"\r\n" + line + b"\r\n" + body).status == 400
    edge.accepts(genuine)


@pytest.mark.parametrize("letter", ["é", "ü", "\x80"])
def test_a_letter_that_is_not_ascii_is_not_signed_over(
    edge: SignedEdge, alice: Sender, letter: str
) -> None:
    """A26: neither in what is covered nor in the parameters."""
    genuine = edge.message(alice)
    with edge.untouched():
        forged = genuine.but(signature_input=input_of(genuine).replace("k1", letter))
        assert edge.send(forged).status in {400, 401}
        forged = genuine.but(content_digest=genuine.field("content-digest") + letter)
        assert edge.send(forged).status in {400, 401}
    edge.accepts(genuine)


# ------------------------------------------------------------------------------ what is no forgery


def test_the_form_of_the_rfc_is_accepted_as_well(edge: SignedEdge, alice: Sender) -> None:
    """R8: without the newline that the dialect ends its base with."""
    genuine = edge.message(alice, signing={"newline": False})
    edge.accepts(genuine)
    edge.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_parameters_in_another_order_hold_if_they_were_signed_so(
    edge: SignedEdge, alice: Sender
) -> None:
    """R8: the signature is held against the text that was received, not against ours."""
    genuine = edge.message(alice)
    created = input_of(genuine).rpartition("=")[2]
    parameters = f';created={created};keyid="k1";alg="ed25519"'
    edge.accepts(sign(alice, genuine, parameters=parameters))
    edge.refuses(genuine, errors.NonceReplayed, REPLAY)


def test_parameters_that_were_reordered_behind_the_signature_do_not_hold(
    edge: SignedEdge, alice: Sender
) -> None:
    """A25: what was signed is the text, and it was another."""
    genuine = edge.message(alice)
    created = input_of(genuine).rpartition("=")[2]
    text = f'sig1=("@method" "@path" "content-digest");created={created};keyid="k1";alg="ed25519"'
    edge.refuses_but_then_accepts(
        genuine.but(signature_input=text), genuine, errors.SignatureInvalid
    )


@pytest.mark.parametrize("created", ["1.5", '"1"', "?1", "-", "99999999999999999999"])
def test_a_created_that_is_no_integer_is_refused(
    edge: SignedEdge, alice: Sender, created: str
) -> None:
    """A16, R11: its age is not judged in this form, but it is a number."""
    genuine = edge.message(alice)
    forged = sign(alice, genuine, created=created)
    with edge.untouched():
        reply = edge.send(forged)
    assert reply.status in {400, 401}
    edge.accepts(genuine)


@pytest.mark.parametrize("parameters", ["", ";created=-1"])
def test_a_signature_that_does_not_say_when_it_was_made_is_none(
    edge: SignedEdge, alice: Sender, parameters: str
) -> None:
    """A16, R12: what is wrong with the signature is 401, and not the shape of the body."""
    genuine = edge.message(alice)
    forged = sign(alice, genuine, parameters=f';keyid="k1";alg="ed25519"{parameters}')
    edge.refuses_but_then_accepts(forged, genuine, errors.SignatureInvalid)


def test_the_age_of_created_is_not_judged_in_the_form_of_the_dialect(
    edge: SignedEdge, alice: Sender
) -> None:
    """R11."""
    edge.accepts(edge.message(alice, signing={"created": 1}))


def test_a_body_that_is_no_envelope_is_told_as_such(edge: SignedEdge, alice: Sender) -> None:
    """A digest and a signature do not make it one."""
    for body in (b"", b"[]", b"null", b'"x"', b"{", b'{"from":1}', b"\xff"):
        with edge.untouched():
            reply = edge.send(sign(alice, unsigned(body)))
        assert reply.status in {400, 401}


@pytest.mark.parametrize("part", ["signature-input", "signature", "content-digest", "body"])
def test_no_bit_of_what_is_signed_can_be_another(
    edge: SignedEdge, alice: Sender, part: str
) -> None:
    """A03, A04, A22, A25: wherever it is flipped, the request is refused and nothing else happens.

    All of them are tried on the functions themselves; here a hundred go through a real gateway.
    """
    genuine = edge.message(alice)
    dice = random.Random(part)  # noqa: S311  the same ones on every run
    whole = genuine.body if part == "body" else genuine.field(part).encode()
    with edge.untouched():
        for place in dice.sample(range(8 * len(whole)), 100):
            flipped = bytearray(whole)
            flipped[place // 8] ^= 1 << place % 8
            forged = (
                genuine.but(body=bytes(flipped))
                if part == "body"
                else genuine.but(**{part.replace("-", "_"): flipped.decode("latin-1")})
            )
            assert edge.send(forged).status in {400, 401}
    edge.accepts(genuine)
