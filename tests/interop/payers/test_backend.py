"""A model is asked with the credential of the payer, and never without it (R30)."""

from collections.abc import Iterator

import pytest

from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.model import Model
from tests.support.organisation import Organisation

CONFIG = """
[agents.theirs]
kind = "openai"
url = "{url}"
model = "m"
authorization = "payer"
may_forward_authorization = true

[payers."voucher_"]
verifier = "voucher"
"""

PAYS = 'kind = "openai"\nurl = "http://m"\nauthorization = "payer"'


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model().serving() as model:
        yield model


@pytest.fixture(scope="module")
def gateway(
    model: Model, database: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("backend"), "acme.example", database())
    gateway.configure(CONFIG.format(url=model.url))
    model.asked.clear()
    gateway.start()
    yield gateway
    gateway.stop()


def asked_with(model: Model, text: str) -> list[str | None]:
    return [asked.headers.get("authorization") for asked in model.of(text)]


def test_the_credential_that_was_forwarded_is_the_authorization_of_the_backend(
    gateway: Organisation, model: Model
) -> None:
    listed = gateway.new_token("bridge", "--may-forward-authorization")
    forwarded = [("x-tangle-forwarded-authorization", "Bearer sk-tan-user-123")]
    reply = gateway.chat("by forwarding", "theirs", token=listed, headers=forwarded)
    assert reply.status == 200, reply
    assert asked_with(model, "by forwarding") == ["Bearer sk-tan-user-123"]
    assert "sk-tan-user-123" not in gateway.log.read_text()


def test_at_the_origin_a_forwardable_token_is_and_no_other(
    gateway: Organisation, model: Model
) -> None:
    own = gateway.new_token("own-key", "--forwardable")
    assert gateway.chat("own key", "theirs", token=own).status == 200
    assert asked_with(model, "own key") == [f"Bearer {own}"]
    reply = gateway.chat("without", "theirs")
    assert (reply.status, reply.code) == (402, "payment_refused")
    assert reply.json["error"]["reason"] == "absent"
    assert model.of("without") == []


def test_a_voucher_is_no_credential_for_a_backend(gateway: Organisation, model: Model) -> None:
    made = gateway.json("vouchers", "issue", "acme.example", "1")
    shown = [("carnet-payment", made["voucher"])]
    reply = gateway.chat("by voucher", "theirs", headers=shown)
    assert reply.json["error"]["reason"] == "absent"
    assert model.of("by voucher") == []


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ('kind = "python"\ntarget = "agents:echo"\nauthorization = "payer"', "kind openai"),
        (PAYS, "may_forward_authorization"),
        (f'{PAYS}\nmay_forward_authorization = true\napi_key = {{env = "K"}}', "api_key"),
    ],
)
def test_a_configuration_that_would_send_it_unlisted_is_refused(
    gateway: Organisation, section: str, why: str
) -> None:
    other = gateway.folder / "other.toml"
    config = (gateway.folder / "carnet.toml").read_text()
    other.write_text(f"{config}\n[agents.wrong]\n{section}\n")
    done = gateway.try_carnet("-c", str(other), "config", "check")
    assert done.returncode == 2
    assert why in done.stderr + done.stdout
