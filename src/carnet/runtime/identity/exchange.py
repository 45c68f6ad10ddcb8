"""Tokens that we give for the assertions of connectors, and what they permit (RFC 8693).

Law 1. Whether somebody is admitted is decided by the rules of the operator, before anything is
       fetched. Then the keys of the connector are looked up, in its own document.
Law 2. Both assertions are of the same connector, for this endpoint, fresh, signed, and used once,
       on all replicas together; last of all, so that nothing forged uses up what is genuine.
Law 3. A token is for one agent, some scopes and five minutes; one that goes on with a task, for
       that task. It names whom it was given to, and the rules are asked again whenever it is shown.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.grant import AccessToken, Grant
from carnet.core.people.proof import SECOND_US
from carnet.core.trust.did import read_did
from carnet.core.trust.federation import (
    TOKEN_PATH,
    FederationRule,
    admitting,
    permissions_of,
    resource_of,
)
from carnet.errors import AddressInvalid, CarnetError, CredentialInvalid, TokenInvalid
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.dids import DidDocuments
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.trust.nonces import SingleUses
from carnet.ports.world.clock import Clock, Ids
from carnet.wire.crypto import ed25519, jws
from carnet.wire.identity import assertion
from carnet.wire.identity.assertion import Assertion, AssertionInvalid
from carnet.wire.identity.did_document import DidDocument
from carnet.wire.identity.token_exchange import (
    ExchangeRefused,
    ExchangeRequest,
    read_request,
    write_answer,
)

HOLDS_SECONDS: Final = 300
TYPE: Final = "at+jwt"
MOST_TOKEN_BYTES: Final = 8192
_ASSERTION: Final = "assertion:"  # before whom a nonce is of, so that it is nobody else's
_CLOCKS: Final = 5  # seconds that the clocks of replicas may be apart


class FederationParts(Struct, frozen=True, kw_only=True, eq=False):
    """What tokens are given and judged with."""

    rules: Sequence[FederationRule]
    keys: OwnKeys
    url: str  # where others reach this gateway
    agents: Collection[str]  # that it serves
    clock: Clock

    @property
    def endpoint(self) -> str:
        """Where tokens are given."""
        return self.url + TOKEN_PATH


class TokenExchange:
    """Gives access tokens for assertions."""

    def __init__(
        self, parts: FederationParts, documents: DidDocuments, nonces: SingleUses, ids: Ids
    ) -> None:
        """`documents` are those of connectors, `nonces` what was used."""
        self._parts = parts
        self._documents = documents
        self._nonces = nonces
        self._ids = ids

    async def exchange(self, body: bytes) -> dict[str, Any]:
        """What a form is answered with; raises ExchangeRefused."""
        asked, now = read_request(body), self._parts.clock.wall_us()
        client, client_for = _read(asked.client_assertion, assertion.CLIENT)
        subject, subject_for = _read(asked.subject_token, assertion.SUBJECT, assertion.CONTINUATION)
        if asked.client_id not in {None, client.issuer} or subject.issuer != client.issuer:
            raise ExchangeRefused("invalid_request", "Client and subject are of two issuers.")
        if subject.task is not None and asked.wants_messages:
            words = "Who goes on with a task sends no messages with it."
            raise ExchangeRefused("invalid_request", words)
        agent = self._agent(asked)
        if not self._admits(subject, agent):  # before anything is fetched
            raise _refused(subject, AssertionInvalid("untrusted-issuer"))
        for each, audience in ((client, client_for), (subject, subject_for)):
            try:
                assertion.check(each, audience, self._parts.endpoint, now)
            except AssertionInvalid as invalid:
                raise _refused(each, invalid) from None
        await self._verify(client, subject)
        await self._use(client, subject)
        token = self._token(asked, subject)
        return write_answer(token, asked.scopes, HOLDS_SECONDS)

    def _agent(self, asked: ExchangeRequest) -> str:
        parts = self._parts
        for each in parts.agents:
            if asked.resource == resource_of(parts.url, each):
                return each
        raise ExchangeRefused("invalid_target", "That is no resource of this server.")

    def _admits(self, subject: Assertion, agent: str) -> bool:
        try:
            read_did(subject.issuer)
        except AddressInvalid:
            return False
        found = admitting(self._parts.rules, subject.issuer, subject.method, subject.subject, agent)
        return found is not None

    async def _verify(self, *assertions: Assertion) -> None:
        """Refuse what is not signed with a key of its issuer; one document is for all of them."""
        again = False
        while True:
            document = await self._document(assertions[0].issuer, again=again)
            faults = [(each, _fault(each, document)) for each in assertions]
            wrong = [(each, fault) for each, fault in faults if fault is not None]
            if not wrong:
                break
            if again or any(fault.reason == "untrusted-issuer" for _, fault in wrong):
                raise _refused(*wrong[0])
            again = True  # a key may have been added since
        now = self._parts.clock.wall_us()
        for each in assertions:
            try:
                assertion.check_time(each, now)
            except AssertionInvalid as invalid:
                raise _refused(each, invalid) from None

    async def _document(self, issuer: str, *, again: bool) -> DidDocument:
        try:
            return await self._documents.find(issuer, again=again)
        except CarnetError:
            words = "The keys of the issuer cannot be fetched now."
            raise ExchangeRefused("server_error", words) from None

    async def _use(self, *assertions: Assertion) -> None:
        for each in assertions:
            ends = each.expires + assertion.SKEW_SECONDS + _CLOCKS
            nonce = Nonce(_ASSERTION + each.issuer, each.id, ends * SECOND_US)
            try:
                is_unused = await self._nonces.use(nonce, "", self._parts.clock.wall_us())
            except CarnetError:
                raise ExchangeRefused("server_error", "Nothing can be recorded now.") from None
            if not is_unused:
                raise _refused(each, AssertionInvalid("replayed-jti"))

    def _token(self, asked: ExchangeRequest, subject: Assertion) -> str:
        parts, signer = self._parts, self._parts.keys.signer()
        issued = parts.clock.wall_us() // SECOND_US
        claims: dict[str, Any] = {
            "iss": parts.url,
            "sub": subject.subject,
            "aud": asked.resource,
            "client_id": subject.issuer,
            "act": {"sub": subject.issuer},
            "scope": " ".join(asked.scopes),
            "iat": issued,
            "exp": issued + HOLDS_SECONDS,
            "jti": self._ids.token(),
        }
        claims |= {} if subject.method is None else {assertion.METHOD_CLAIM: subject.method}
        claims |= {} if subject.task is None else {assertion.TASK_CLAIM: subject.task}
        return jws.write(claims, kid=signer.kid, typ=TYPE, sign=signer.sign)


class ExchangedTokens:
    """Knows the tokens that were given."""

    def __init__(self, parts: FederationParts) -> None:
        """`parts` are those that they were given with."""
        self._parts = parts

    async def find(self, shown: AccessToken, agent: str, now: int, /) -> Grant:
        """What a token grants at an agent; raises TokenInvalid or CredentialInvalid."""
        try:
            token = jws.read(shown.token.reveal(), typ=TYPE, max_bytes=MOST_TOKEN_BYTES)
        except jws.JwsInvalid as error:
            raise CredentialInvalid(reason=f"it {error}") from None
        keys = {key.kid: key for key in self._parts.keys.published(now)}
        key = keys.get(token.keyid)
        public = b"" if key is None or key.state == "revoked" else key.public
        if not ed25519.holds(public, token.signed, token.signature):
            raise CredentialInvalid(reason="its signature holds under no key of its issuer")
        return self._grant(token.payload, agent, now)

    def _grant(self, claims: dict[str, Any], agent: str, now: int) -> Grant:
        """What it says is what we wrote; whether it holds here and now is looked at."""
        if claims["aud"] != resource_of(self._parts.url, agent):
            raise CredentialInvalid(reason="it is for another audience")
        if claims["exp"] * SECOND_US <= now:
            raise CredentialInvalid(reason="it has expired")
        issuer, subject = claims["client_id"], claims["sub"]
        method, task = claims.get(assertion.METHOD_CLAIM), claims.get(assertion.TASK_CLAIM)
        rule = admitting(self._parts.rules, issuer, method, subject, agent)
        if rule is None:  # it was taken out of the list since
            raise TokenInvalid
        return Grant(
            issuer=f"https://{read_did(issuer).domain}",
            subject=subject,
            scopes=permissions_of(claims["scope"].split(" "), agent, pays=rule.credit > 0),
            expires=claims["exp"],
            client=issuer,
            credit=rule.credit,
            task=task,
        )


def _read(text: str, *types: str) -> tuple[Assertion, object]:
    try:
        return assertion.read(text, *types)
    except AssertionInvalid as invalid:
        raise _refusal(invalid, is_client=types == (assertion.CLIENT,)) from None


def _fault(each: Assertion, document: DidDocument) -> AssertionInvalid | None:
    """What is wrong with the key or the signature of an assertion."""
    if document.id != each.issuer:
        return AssertionInvalid("untrusted-issuer")
    method = document.methods.get(each.keyid)
    if method is None or not document.vouches(each.keyid):
        return AssertionInvalid("kid-not-authorized")
    if not ed25519.holds(method.key, each.signed, each.signature):
        return AssertionInvalid("invalid-signature")
    return None


def _refused(each: Assertion, invalid: AssertionInvalid) -> ExchangeRefused:
    return _refusal(invalid, is_client=each.typ == assertion.CLIENT)


def _refusal(invalid: AssertionInvalid, *, is_client: bool) -> ExchangeRefused:
    words = f"The assertion is refused: {invalid.reason}."
    return ExchangeRefused("invalid_client" if is_client else "invalid_grant", words)
