"""Identity of Mentionable, as rows: what it is called, and where it must not stay.

It is read with the claim and judged by the guards (`guards.caller.evidence`); calls carry it from
`runtime.peers.a2a.own_evidence`.
"""

from typing import Final

from carnet.wire.dialects.a2a.extensions.row import ExtensionRow
from carnet.wire.grammar.mentionable import (
    IDENTITY_EVIDENCE,
    NAMESPACE,
    VERIFIABLE_CREDENTIALS,
    spellings,
)
from carnet.wire.identity.platform_credential import URI as PLATFORM_URI

URI: Final = "https://mentionable.dev/ns/identity/v0.1"
FORMER_URI: Final = "https://mentionable.dev/spec/identity/v0.1"

IDENTITY: Final = ExtensionRow(
    name="identity",
    uris=(URI,),
    keys=(f"{NAMESPACE}.{IDENTITY_EVIDENCE}",),
    is_declared=True,
    description="Signed attestations of who calls, and for whom.",
    reads="who vouches for the caller, and for whom it acts",
    writes="which agent of ours calls, and for whom, signed for the one who is called",
    believes="an attestation that holds: signed by an issuer whom the operator trusts, for us, "
    "a few minutes old, and used once; anything else is set aside",
    # Signed for us alone: neither recorded, nor part of what is compared, nor told again.
    secrets=spellings(IDENTITY_EVIDENCE),
)

PLATFORM_IDENTITY: Final = ExtensionRow(
    name="platform-identity",
    uris=(PLATFORM_URI,),
    keys=(f"{NAMESPACE}.{VERIFIABLE_CREDENTIALS}",),
    is_declared=True,
    description="Verifiable credentials of who uses a platform, for one recipient and message.",
    reads="who uses the platform that calls",
    writes="which person or agent of ours calls, signed for the one who is called and the message",
    believes="a credential that holds: of an issuer whom the operator trusts, for us and for the "
    "message that brings it, a few minutes old, and used once; anything else is set aside",
    secrets=spellings(VERIFIABLE_CREDENTIALS),
)
