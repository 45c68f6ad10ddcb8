"""Signatures of requests: what is read, what is covered, what is written, what is refused."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.errors import SignatureInvalid, SignatureMissing
from carnet.wire.crypto import digests, ed25519
from carnet.wire.crypto.components import Uncoverable
from carnet.wire.crypto.signatures import (
    MAX_BYTES,
    MAX_COMPONENTS,
    Presented,
    Request,
    _read_any,
    _read_plain,
    base,
    read,
    write,
)
from carnet.wire.grammar.headers import Headers
from tests.wire.crypto.messages import SAMVAD, SEED, draw

sign = ed25519.signer(SEED)

BODY = b"{}"
PARAMETERS = ';keyid="alice";alg="ed25519";created=1776146908'
INPUT = f'sig1=("@method" "@path" "content-digest"){PARAMETERS}'
VALUE = f"sig1=:{'A' * 86}==:"


def fields(*lines: tuple[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode("latin-1")) for name, value in lines])


def given_fields(given: str, value: str = VALUE) -> Headers:
    return fields(("signature-input", given), ("signature", value))


def covering(number: int) -> str:
    """The input of a signature over so many fields."""
    listed = " ".join(f'"a{index}"' for index in range(number))
    return f"sig1=({listed}){PARAMETERS}"


def request(headers: Headers | None = None, **facts: Any) -> Request:
    facts = {"method": "POST", "authority": "a.example", "path": "/agent/message", **facts}
    headers = headers or fields(("content-digest", digests.write(BODY)))
    return Request(query=facts.pop("query", None), headers=headers, **facts)


# -------------------------------------------------------------------------------------- reading


def test_the_usual_form_is_read() -> None:
    assert read(given_fields(INPUT)) == Presented(
        label="sig1",
        components=("@method", "@path", "content-digest"),
        created=1776146908,
        keyid="alice",
        alg="ed25519",
        text=INPUT.removeprefix("sig1="),
        signature=bytes(64),
    )


def test_every_parameter_is_read_in_any_order() -> None:
    given = (
        'a*=( "b"  "@query" ); tag="t";nonce="n\\"\\\\";expires=2;created=-1;keyid="";alg="ed25519"'
    )
    assert read(given_fields(given, f" {VALUE.replace('sig1', 'a*')}\t")) == Presented(
        label="a*",
        components=("b", "@query"),
        created=-1,
        expires=2,
        keyid="",
        nonce='n"\\',
        alg="ed25519",
        tag="t",
        text=given.removeprefix("a*="),
        signature=bytes(64),
    )


def test_a_signature_need_not_say_anything_of_itself() -> None:
    found = read(given_fields("s=()", VALUE.replace("sig1", "s")))
    assert found == Presented(label="s", components=(), text="()", signature=bytes(64))


@pytest.mark.parametrize(
    "headers",
    [
        fields(),
        fields(("signature-input", INPUT)),
        fields(("signature", VALUE)),
        given_fields("", VALUE),
        given_fields(INPUT, " "),
        given_fields("", ""),
    ],
)
def test_a_request_without_a_signature_is_told_so(headers: Headers) -> None:
    with pytest.raises(SignatureMissing):
        read(headers)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (INPUT, VALUE.replace("sig1", "sig2")),
        (INPUT.replace("sig1", "sig2"), VALUE),
        (INPUT, f"{VALUE}, sig2=:AAAA:"),
        (f"{INPUT}, {INPUT.replace('sig1', 'sig2')}", VALUE),
        (f"{INPUT}, {INPUT.replace('sig1', 'b')}", f"{VALUE}, {VALUE.replace('sig1', 'b')}"),
        (f"{INPUT}, {INPUT}", VALUE),
        (INPUT, f"{VALUE}, {VALUE}"),
        (INPUT.replace("sig1", "Sig1"), VALUE.replace("sig1", "Sig1")),
        (INPUT, VALUE.replace(":", "")),
        (INPUT, VALUE.replace("=:", "=").replace("==:", "==")),
        (INPUT, f"sig1=:{'A' * 85}B==:"),
        (INPUT, f"sig1=:{'_' * 86}==:"),
        (INPUT, f"sig1=:{'A' * 86}:"),
        (INPUT, f"sig1=:{'A' * 84}:"),
        (INPUT, f"sig1=:{'A' * 87}=:"),
        (INPUT, "sig1=::"),
        (INPUT, "sig1"),
        (INPUT, 'sig1="AAAA"'),
        (INPUT, f"{VALUE};a=1"),
        (INPUT, f"sig1=({VALUE.removeprefix('sig1=')})"),
        (INPUT, f"{VALUE},"),
        (INPUT, f"{VALUE}\x00"),
        ("sig1", VALUE),
        ("sig1=1", VALUE),
        ('sig1="@method"', VALUE),
        ("sig1=(", VALUE),
        ('sig1=("@method', VALUE),
        ('sig1=("@method)', VALUE),
        ('sig1=("@method""@path")', VALUE),
        ('sig1=("@method", "@path")', VALUE),
        ('sig1=("@Method")', VALUE),
        ('sig1=("Content-Digest")', VALUE),
        ('sig1=("")', VALUE),
        ('sig1=("@")', VALUE),
        ('sig1=("a b")', VALUE),
        ("sig1=(date)", VALUE),
        ("sig1=(1)", VALUE),
        ('sig1=("date" "date")', VALUE),
        ('sig1=("date" "@path" "date");keyid="a";alg="ed25519";created=1', VALUE),
        ('sig1=("date";sf)', VALUE),
        ('sig1=("date";bs)', VALUE),
        ('sig1=("date";tr)', VALUE),
        ('sig1=("@path";req)', VALUE),
        ('sig1=("date";key="a")', VALUE),
        ('sig1=("@query-param";name="a")', VALUE),
        ('sig1=("date";unknown)', VALUE),
        (INPUT + ";created=1776146908", VALUE),
        (INPUT + ';keyid="alice"', VALUE),
        (INPUT + ";unknown=1", VALUE),
        (INPUT + ";Expires=1", VALUE),
        (INPUT + ';expires="1"', VALUE),
        (INPUT + ";expires=1.0", VALUE),
        (INPUT + ";expires=@1", VALUE),
        (INPUT + ";expires", VALUE),
        (INPUT + ";nonce=abcdefgh", VALUE),
        (INPUT + ";nonce", VALUE),
        (INPUT + ";tag=1", VALUE),
        (INPUT.replace("1776146908", "abc"), VALUE),
        (INPUT.replace("1776146908", "1" * 16), VALUE),
        (INPUT.replace("1776146908", "١"), VALUE),
        (INPUT.replace('"alice"', "alice"), VALUE),
        (INPUT.replace("alice", "é"), VALUE),
        (INPUT.replace("alice", "a\x00"), VALUE),
        (INPUT.replace("ed25519", "hmac-sha256"), VALUE),
        (INPUT.replace("ed25519", "rsa-pss-sha512"), VALUE),
        (INPUT.replace("ed25519", "ED25519"), VALUE),
        (INPUT.replace("ed25519", ""), VALUE),
        (covering(MAX_COMPONENTS + 1), VALUE),
        (covering(10_000), VALUE),
        (INPUT.replace("alice", "a" * MAX_BYTES), VALUE),
        (INPUT, VALUE + " " * MAX_BYTES + ","),
    ],
)
def test_what_is_not_exactly_one_signature_is_refused(given: str, value: str) -> None:
    read(given_fields(INPUT))
    raw = [(b"signature-input", given.encode()), (b"signature", value.encode())]
    with pytest.raises(SignatureInvalid):
        read(Headers(raw))


@pytest.mark.parametrize("name", ["signature-input", "signature"])
def test_a_signature_on_two_lines_is_refused(name: str) -> None:
    lines = {"signature-input": INPUT, "signature": VALUE}
    with pytest.raises(SignatureInvalid):
        read(fields(*lines.items(), (name, lines[name])))


def test_as_many_components_as_are_allowed_are_read() -> None:
    assert len(read(given_fields(covering(MAX_COMPONENTS))).components) == MAX_COMPONENTS
    assert len(read(given_fields(covering(MAX_COMPONENTS) + " ")).components) == MAX_COMPONENTS


def test_the_detail_of_a_refusal_stays_in_the_log() -> None:
    with pytest.raises(SignatureInvalid) as refusal:
        read(given_fields('sig1=("secret thing")'))
    assert "secret" not in str(refusal.value)
    assert "component" not in refusal.value.safe_text


PIECES = st.sampled_from(
    [
        *(
            "sig1",
            "a*",
            "=",
            "(",
            ")",
            '"',
            " ",
            ";",
            "@method",
            "@path",
            "content-digest",
            "@a1",
            "x",
        ),
        *(
            '"@method" "@path"',
            ';keyid="a"',
            ';keyid="\\""',
            ';alg="ed25519"',
            ';alg="x"',
            ";created=1",
        ),
        *(";created=0001", ";created=-1", ";expires=2", ';nonce="n"', ';tag="t"', ";x", ", ", "é"),
    ]
)
inputs = st.lists(PIECES, max_size=9).map("".join) | st.builds(
    'sig1=("{}"){}{}{}'.format,
    st.lists(st.sampled_from(["@method", "@path", "date", "a-b", "a_b", "@x-y"]), max_size=3).map(
        '" "'.join
    ),
    st.just(';keyid="k";alg="ed25519";created=12') | st.just(""),
    st.sampled_from(["", ";expires=3"]),
    st.sampled_from(["", ';nonce="n"', ';nonce="n";tag="t"', ';tag="t"', ';tag="t";nonce="n"']),
)
values = st.just(VALUE) | st.sampled_from(
    [VALUE.replace("sig1", "a"), f"sig1=:{'A' * 85}B==:", f"sig1=:{'/' * 85}w==:", "sig1=:AAAA:"]
)


def verdict(reader: Any, given: str, value: str) -> Any:
    try:
        return reader(given, value)
    except SignatureInvalid:
        return SignatureInvalid


@given(inputs, values)
def test_the_quick_way_reads_what_the_grammar_reads(given: str, value: str) -> None:
    quick, whole = verdict(_read_plain, given, value), verdict(_read_any, given, value)
    assert quick in (None, whole)


def test_what_we_write_goes_the_quick_way() -> None:
    for number in range(50):
        draft = draw(Random(number))  # noqa: S311
        headers = dict(replace(draft, keyid="kid-1", nonce=draft.nonce and "n" * 8).signed().lines)
        pair = headers["signature-input"], headers["signature"]
        assert _read_plain(*pair) == _read_any(*pair)


# ------------------------------------------------------------------------------------- the base


def presented(*components: str, text: str = "()") -> Presented:
    return Presented(label="s", components=components, text=text, signature=bytes(64))


def test_the_base_of_a_request_is_the_text_of_the_rfc() -> None:
    found = read(given_fields(INPUT))
    lines = [
        '"@method": POST',
        '"@path": /agent/message',
        f'"content-digest": {digests.write(BODY)}',
        f'"@signature-params": {INPUT.removeprefix("sig1=")}',
    ]
    assert base(found, request()) == "\n".join(lines).encode()
    assert base(found, request(), newline=True) == "\n".join([*lines, ""]).encode()
    assert base(found, request(), path="/x").split(b"\n")[1] == b'"@path": /x'


def test_the_literal_text_is_signed_not_what_it_means() -> None:
    text = '( "@method" );  keyid="a";created=007'
    found = read(given_fields(f"sig1={text}"))
    assert base(found, request()).decode() == f'"@method": POST\n"@signature-params": {text}'


def test_the_method_is_as_it_was_sent_but_for_samvad() -> None:
    assert base(presented("@method"), request(method="post")).startswith(b'"@method": post\n')
    samvad = base(presented("@method"), request(method="post"), newline=True)
    assert samvad.startswith(b'"@method": POST\n')


def test_a_blank_field_is_covered_and_an_absent_one_is_not() -> None:
    assert base(presented("a"), request(fields(("a", " ")))).startswith(b'"a": \n')
    with pytest.raises(SignatureInvalid):
        base(presented("a"), request(fields(("b", ""))))


@pytest.mark.parametrize("name", ["@status", "@query-param", "@signature-params", "@unknown"])
def test_what_a_request_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(SignatureInvalid):
        base(presented(name), request())


@pytest.mark.parametrize("value", ['x\n"@method": GET', "a\rb", "a\x00b", "é", "\x7f"])
def test_no_value_forges_a_line(value: str) -> None:
    for attempt in (
        request(fields(("a", value))),
        request(fields(("a", "x")), authority=value),
        request(fields(("a", "x")), query=value),
        request(fields(("a", "x")), path=f"/{value}"),
    ):
        with pytest.raises(SignatureInvalid):
            base(presented("a", "@authority", "@query", "@path"), attempt)
    with pytest.raises(SignatureInvalid):
        base(presented("@path"), request(), path=value)


# -------------------------------------------------------------------------------------- writing


def test_what_is_written_has_the_order_that_every_sdk_takes() -> None:
    headers = write(
        request(), components=SAMVAD, keyid="alice", created=1776146908, sign=sign, newline=True
    )
    assert headers["signature-input"] == INPUT


def test_a_component_that_the_request_lacks_is_a_mistake_of_ours() -> None:
    for name in ("absent", "@status"):
        with pytest.raises(Uncoverable):
            write(request(), components=(name,), keyid="k", created=1, sign=sign)


def test_the_algorithm_may_be_left_unsaid() -> None:
    headers = write(request(), components=(), keyid="k", created=1, sign=sign, alg=None, label="a")
    assert headers["signature-input"] == 'a=();keyid="k";created=1'
    assert headers["signature"].startswith("a=:")
