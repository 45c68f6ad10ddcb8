"""Vouchers that were issued: what is kept of them, whose they are, and what was revoked."""

from msgspec.structs import replace

from carnet.core.voucher import Voucher
from carnet.ports.calls.turns import Nonce
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW

SECONDS = NOW // 1_000_000
ACME = "acme.example"
VOUCHER = Voucher(
    issuer=ACME,
    id="v-1",
    audience="globex.example",
    account="alice",
    amount=5,
    currency="credits",
    issued=SECONDS,
    expires=SECONDS + 600,
)


async def test_what_holds_is_listed_newest_first_and_the_rest_when_it_is_asked_for(
    store: Store,
) -> None:
    later = replace(VOUCHER, id="v-2", issued=SECONDS + 1, holder="bob")
    past = replace(VOUCHER, id="v-3", issued=SECONDS - 9, expires=SECONDS)
    other = replace(VOUCHER, id="v-4", issuer="other.example")
    for each in (VOUCHER, later, past, other):
        await store.vouchers.record(each)
    listed = await store.vouchers.list(ACME, NOW, limit=9)
    assert [(one.id, one.holder, one.state(NOW)) for one in listed] == [
        ("v-2", "bob", "live"),
        ("v-1", None, "live"),
    ]
    every = await store.vouchers.list(ACME, NOW, limit=9, with_ended=True)
    assert [(one.id, one.state(NOW)) for one in every][-1] == ("v-3", "expired")
    assert len(await store.vouchers.list(ACME, NOW, limit=1)) == 1
    found = await store.vouchers.find(ACME, "v-1")
    assert found is not None
    assert (found.amount, found.account, found.expires) == (5, "alice", VOUCHER.expires * 1_000_000)
    assert await store.vouchers.find("other.example", "v-1") is None


async def test_one_is_revoked_once_by_its_own_issuer_and_before_its_end(store: Store) -> None:
    await store.vouchers.record(VOUCHER)
    await store.vouchers.record(replace(VOUCHER, id="v-2", expires=SECONDS - 1))
    assert not await store.vouchers.end("other.example", "v-1", NOW)
    assert not store.vouchers.is_ended("v-1")
    assert await store.vouchers.end(ACME, "v-1", NOW)
    assert store.vouchers.is_ended("v-1")
    assert store.vouchers.ended() == {"v-1": VOUCHER.expires * 1_000_000}
    assert not await store.vouchers.end(ACME, "v-1", NOW)
    assert not await store.vouchers.end(ACME, "v-2", NOW)
    revoked = await store.vouchers.find(ACME, "v-1")
    assert revoked is not None
    assert (revoked.ended, revoked.state(NOW)) == (NOW, "revoked")


async def test_whether_one_was_used_here_is_known_by_issuer_and_id(store: Store) -> None:
    use = Nonce("voucher:acme.example", "v-1", NOW + 600_000_000)
    assert not await store.vouchers.is_used(use)
    assert await store.used_nonces.use(use, "", NOW)
    assert await store.vouchers.is_used(use)
    assert not await store.vouchers.is_used(replace(use, sender="voucher:other.example"))
