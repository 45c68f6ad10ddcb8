"""What was signed, as people are shown it: the chain and the digest, and never a credential."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.crypto import signatures
from carnet.wire.grammar.headers import Headers
from carnet.wire.travel.signed_text import MOST_BYTES, hide, read_sent

BASE = b"""\
"@method": POST
"@authority": globex.example
"@query": ?token=secret
"content-digest": sha-256=:abc=:
"x-tangle-runid": conv_1
"x-tangle-parent-turnid": above
"x-tangle-forwarded-authorization": Bearer secret
"authorization": Bearer secret
"carnet": eyJhbGciOi.secret
"@signature-params": ("@method");keyid="k";nonce="n"
"""


def test_of_what_was_signed_the_chain_is_shown_and_no_credential() -> None:
    shown = hide(BASE)
    assert b"secret" not in shown
    for line in (b'"x-tangle-runid": conv_1', b'"@method": POST', b'"carnet": ***', b'nonce="n"'):
        assert line in shown
    assert shown.count(b"\n") == BASE.count(b"\n")
    assert hide(shown) == shown


@given(st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1))
def test_a_line_that_nobody_has_listed_is_hidden_whatever_it_is_called(name: str) -> None:
    field = f"{name}-x"
    assert hide(f'"{field}": secret'.encode()) == f'"{field}": ***'.encode()


def test_what_is_kept_is_bounded() -> None:
    assert len(hide(BASE + b"x" * 2 * MOST_BYTES)) == MOST_BYTES


COMPONENTS = ("@method", "@authority", "@path", "content-digest", "x-tangle-runid", "carnet")
DIGEST = "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"


@pytest.mark.parametrize("newline", [True, False])
def test_the_base_of_a_call_out_is_built_from_what_was_kept_of_it(newline: bool) -> None:  # noqa: FBT001
    signed: list[bytes] = []

    def sign(text: bytes) -> bytes:
        signed.append(text)
        return bytes(64)

    fields = {"content-digest": DIGEST, "x-tangle-runid": "conv_1", "carnet": "secret"}
    request = signatures.Request(
        method="POST",
        authority="globex.example:8443",
        path="/agent/message",
        headers=Headers([(name.encode(), value.encode()) for name, value in fields.items()]),
    )
    written = signatures.write(
        request, components=COMPONENTS, keyid="k", created=1, sign=sign, newline=newline
    )
    kept = (
        "POST https://globex.example:8443/agents/a/agent/message /agent/message "
        f"{newline:d}\n{DIGEST}\n{written['signature-input']}"
    )
    sent = read_sent(kept, {"x-tangle-runid": "conv_1"})
    assert sent is not None
    assert sent.base == hide(signed[0]).decode()
    assert '"carnet": ***' in sent.base
    assert (sent.method, sent.digest) == ("POST", DIGEST)
    assert sent.url == "https://globex.example:8443/agents/a/agent/message"


@pytest.mark.parametrize(
    "input",
    ['sig1=("@method" "@method");keyid="k"', "none", 'sig1=("@status");keyid="k";created=1'],
)
def test_what_is_not_in_its_form_has_no_base(input: str) -> None:
    sent = read_sent(f"POST https://globex.example/ / 0\n{DIGEST}\n{input}", {})
    assert sent is not None
    assert sent.base is None
    assert read_sent("POST https://globex.example/", {}) is None
