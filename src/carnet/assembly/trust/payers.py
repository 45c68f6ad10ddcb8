"""From the `[payers]` sections to what verifies the payments that calls bring along."""

import inspect

from carnet.assembly.agents.functions import load
from carnet.config import Settings
from carnet.config.trust.payers import issuer_of
from carnet.errors import ConfigInvalid
from carnet.guards.caller.voucher import Vouchers
from carnet.guards.payments import Payers
from carnet.ports.trust.keys import KeyRing
from carnet.ports.trust.payers import PaymentVerifier
from carnet.runtime.payments import PluggedVerifier, Verify
from carnet.runtime.peers.ended import EndedLists
from carnet.stores.open import Store


def build_payers(
    settings: Settings, store: Store, keys: KeyRing, ended: EndedLists
) -> Payers | None:
    """Who verifies what; None where nobody does."""
    currency, found = settings.ledger.currency, dict[str, PaymentVerifier]()
    for prefix, payer in settings.payers.items():
        if payer.target is None:
            found[prefix] = Vouchers(
                keys,
                store.peers,
                domain=settings.gateway.domain,
                currency=currency,
                is_ended=store.vouchers.is_ended,
                fresh=ended.check_voucher,
            )
        else:
            verify = load_verifier(payer.target, settings, key=f'payers."{prefix}".target')
            issuer = issuer_of(prefix, payer)
            found[prefix] = PluggedVerifier(
                verify, issuer=issuer, currency=currency, seconds=payer.seconds
            )
    return Payers(found) if found else None


def load_verifier(target: str, settings: Settings, *, key: str) -> Verify:
    """The operator's function: it takes a credential and a call."""
    verify = load(target, settings.base, key=key)
    if not callable(verify):
        raise ConfigInvalid(key=key, reason=f"'{target}' is not a function")
    try:
        inspect.signature(verify).bind(None, None)
    except TypeError:
        reason = f"'{target}' does not take a credential and a call"
        raise ConfigInvalid(key=key, reason=reason) from None
    except ValueError:  # its signature cannot be seen
        pass
    return verify
