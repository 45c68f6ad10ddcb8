"""What a request says about itself: the account that the issuer of a document answers for."""

import pytest

from carnet.core.people.identity import Account
from carnet.core.people.proof import WINDOWS, Document, Window


@pytest.mark.parametrize(
    ("payer", "account"),
    [
        (None, Account("b.example", "b.example")),
        (Account("b.example", "token:ann"), Account("b.example", "token:ann")),
        (Account("c.example", "token:ann"), Account("b.example", "token:ann@c.example")),
    ],
)
def test_the_issuer_answers_for_its_own_account_or_one_it_vouches_for(
    payer: Account | None, account: Account
) -> None:
    document = Document(
        issuer="b.example",
        audience="a.example",
        issued=1,
        expires=2,
        run="r",
        turn="t",
        depth=1,
        last_depth=3,
        payer=payer,
        digest="sha-256=:x:",
        keyid="k1",
    )
    assert document.account == account


def test_our_own_profile_gives_less_time_than_the_seeds() -> None:
    assert WINDOWS["samvad"] == Window(past=300, future=60)
    assert WINDOWS["carnet"] == Window(past=60, future=30)
