"""Refused for who asks: the caller, the proof of a signed request, a delegation."""

from carnet.errors.base import Refused


class TokenMissing(Refused, code="token_missing", status=401):
    """The endpoint needs a bearer token and none came with the request."""

    template = "This endpoint needs a bearer token."
    hint = "Send 'authorization: Bearer TOKEN'; 'carnet tokens create NAME' makes one."


class TokenInvalid(Refused, code="token_invalid", status=401):
    """The bearer token is unknown, revoked or expired. The three look alike on purpose."""

    template = "The bearer token is not valid here."
    hint = "Use a current token; 'carnet tokens list' shows which exist, 'tokens create' makes one."


class PolicyDenied(Refused, code="policy_denied", public=("action",)):
    """The policy that the operator has set (`[policy] target`) denies the call or the tool.

    It also does where the policy fails or does not answer in time. Why, is in the gateway's log.
    """

    template = "The policy of this gateway denies this {action}."
    hint = "Do not repeat it; the operator of the gateway finds the reason in its log."

    def __init__(self, detail: str = "", /, *, action: str = "call") -> None:
        """`detail` is the policy's reason, for the log alone; `action` is a call or a tool."""
        super().__init__(detail, action=action)


class CallerNotVerified(Refused, code="caller_not_verified", status=401):
    """The key or certificate beside a caller context is not that of the host which it names.

    Whether the host is listed, and whether its key has ended, is told to nobody.
    """

    template = "The calling host could not be verified by the key that was shown."
    hint = "Show the key that 'carnet callers add' or 'callers rotate' printed, or show none."


class SessionInvalid(Refused, code="session_invalid", status=401):
    """Nobody is signed in: the session is unknown, was ended or has run out, or there is none."""

    template = "Nobody is signed in here, or no longer."
    hint = "Sign in again: 'carnet people sign-in NAME' prints a link."


class SignInCodeInvalid(Refused, code="sign_in_code_invalid", status=401):
    """The code of a link to sign in with is unknown, was used, or its time is over.

    A link is good once, and for some minutes.
    """

    template = "This link does not sign in: it was used, has run out, or is none of this gateway's."
    hint = "Have another one made: carnet people sign-in NAME"


class CrossSite(Refused, code="cross_site"):
    """A browser sent its cookie for a page that is not ours, or a change without its csrf token."""

    template = "This came with a cookie, and not from a page of this gateway."
    hint = "Send 'x-csrf-token' as 'GET /session' tells it, from a page of this gateway's origin."


class HostUnknown(Refused, code="host_unknown", status=421):
    """A page of the console was asked for under a name that is not this gateway's."""

    template = "The pages of this gateway are not shown under this name."
    hint = "Open it under its own address, or set [gateway] public_url to the one that you use."


class PersonRequired(Refused, code="person_required"):
    """What was asked for belongs to people: memory, hooks, sessions. The token is a machine's."""

    template = "This belongs to a person, and this token is a machine's."
    hint = "Show a token of a person (--as @FILE): carnet tokens create NAME --person PERSON"


class SessionRequired(Refused, code="session_required"):
    """What was asked for is for who has signed in at the console; a token was shown instead."""

    template = "This is for who has signed in at the console; a token does not ask for it."
    hint = "Sign in at /console/ with that token, and press the button there."


class TooManyFailures(
    Refused, code="too_many_failures", status=429, retryable=True, public=("limit",)
):
    """The address this request came from has sent too many wrong tokens within a minute.

    Nobody is locked out: a valid token is accepted from there as before.
    """

    template = "Too many wrong tokens came from this address within a minute; the limit is {limit}."
    hint = "Use a current token; a wrong one is looked at again after the time of Retry-After."


class PermissionMissing(Refused, code="permission_missing", public=("permission",)):
    """The caller is known, but its token does not hold the permission this call needs."""

    template = "This token lacks the permission '{permission}'."
    hint = "Ask the operator for a token with --scope {permission}."


class AccessDenied(Refused, code="access_denied", public=("rule", "lacks")):
    """The caller is known, and no rule of the agent's `allow` list admits it.

    Once an agent has such a list, nobody else may call it. `rule` is the one that is nearest to
    admitting the caller, and `lacks` what of it was not shown: a `subject` that is proved, whom it
    acts for (`on_behalf_of`), or the `action`. What the rules themselves say is told to nobody.
    """

    template = "No rule of this agent admits you; the nearest is {rule}, for want of {lacks}."
    hint = "Show identity evidence that fits that rule, or ask {contact} to admit you."

    def __init__(self, *, rule: str, lacks: str, contact: str | None = None) -> None:
        """`rule` names a rule of our configuration, `contact` is whom its operator named."""
        super().__init__("", rule=rule, lacks=lacks, contact=contact or "its operator")


class CredentialInvalid(Refused, code="credential_invalid", status=401, public=("reason",)):
    """The bearer credential is a JWT, and none that is taken here.

    It is compact and signed with EdDSA by a key that the sender publishes; its header has alg, kid
    and typ "JWT" and nothing else; it says iss, sub, aud, iat, exp and jti, each once, and holds
    for at most ten minutes. An access token is taken from the issuers of `[identity.oauth]` alone.
    """

    template = "The JWT of this request is not taken: {reason}."
    hint = "Sign a new one for this agent with a key that your card shows; see 'carnet explain'."


class SignatureMissing(Refused, code="signature_missing", status=401):
    """The request must be signed and is not."""

    template = "This endpoint takes signed requests."
    hint = "Sign the request (RFC 9421) with the key that your card publishes."


class SignatureInvalid(Refused, code="signature_invalid", status=401):
    """The signature does not hold for this request.

    There must be exactly one, over this method, path and body, made with the Ed25519 key that the
    keyid names.
    """

    template = "The signature of the request does not hold."
    hint = "Sign exactly what is sent, with the key of your card; a proxy must change none of it."


class SignatureExpired(Refused, code="signature_expired", status=401):
    """The signature says itself that it has expired."""

    template = "The signature of the request has expired."
    hint = "Sign the request anew."


class InsufficientCoverage(Refused, code="insufficient_coverage", status=401):
    """The signature does not cover what it must: method, path, digest, and with them the rest."""

    template = "The signature does not cover all it must."
    hint = "Cover @method, @path and content-digest, or the whole profile of a Carnet."


class HeaderNotSigned(Refused, code="header_not_signed", status=401):
    """A header that tells the chain, the payer or an identity stands outside the signature."""

    template = "A header of the request is not covered by its signature."
    hint = "Cover every chain and identity header, or leave them out; a query is covered or absent."


class DigestInvalid(Refused, code="digest_invalid", status=401):
    """The Content-Digest header is missing or not one well-formed sha-256."""

    template = "The Content-Digest header is missing or not one sha-256."
    hint = "Send 'Content-Digest: sha-256=:BASE64:' of the body (RFC 9530)."


class DigestMismatch(Refused, code="digest_mismatch", status=401):
    """The body is not the one that the Content-Digest header was made for."""

    template = "The body does not match its Content-Digest."
    hint = "Send the body unchanged, byte for byte, after its digest was made."


class DestinationMismatch(Refused, code="destination_mismatch", status=401):
    """The signed request is meant for somebody else."""

    template = "The signed request is not addressed to this agent."
    hint = "Address it to the id that the card of this agent shows, and sign it anew."


class KeyUnknown(Refused, code="key_unknown", status=401):
    """No key of that sender and that keyid is known here, nor in its card.

    A card is looked at again within a minute: a key that is shown before it signs is never unknown.
    The operator of this gateway admits a sender that has no card with the command in the hint.
    """

    template = "No key of this sender is known here."
    hint = (
        "Show the key in your card and try again in a minute; without a card, ask the operator to "
        "admit it: carnet peers add {sender} --key {key}"
    )
    listed: bool = False  # also of one that is made of a record

    def __init__(
        self, detail: str = "", /, *, sender: str = "agent://DOMAIN", listed: bool = False
    ) -> None:
        """`sender` is an identity in its stored form; never raw text of a peer.

        `listed` is one whose card is known, and needs no other way to be believed.
        """
        super().__init__(detail, sender=sender, key="BASE64")
        self.listed = listed

    @property
    def next_step(self) -> str:
        """A peer's key is in its card sooner or later; a pinned one would outlive its rotation."""
        if self.listed:
            return "Your card does not show this key yet; it is looked at again within a minute."
        return super().next_step


class KeyRevoked(Refused, code="key_revoked", status=401):
    """The key of the signature was revoked or has expired."""

    template = "The key of the signature is no longer valid."
    hint = "Sign with an active key of your card."


class NonceReplayed(Refused, code="nonce_replayed", status=401):
    """A signed request with this nonce was accepted before: it runs once."""

    template = "A request with this nonce was accepted before."
    hint = "Sign a new request with a new nonce."


class TimestampOutOfWindow(Refused, code="timestamp_out_of_window", status=401):
    """The time of the signed request is too far from ours.

    The answer's Date header tells our time.
    """

    template = "The time of the request is outside the window that is accepted."
    hint = "Set the clock (our time is in the Date header) and sign the request anew."


class DelegationInvalid(Refused, code="delegation_invalid", status=401, public=("link", "reason")):
    """The delegation token, or one of those it was derived from, does not hold.

    Links are counted from the first token of the chain, which is link 1.
    """

    template = "Link {link} of the delegation does not hold: {reason}."
    hint = "Ask its issuer for a new token, or call without one."

    def __init__(
        self,
        detail: str = "",
        /,
        *,
        reason: str = "it cannot be read",
        link: int = 1,
        issuer: str | None = None,
    ) -> None:
        """`reason` is one of our own phrases; never text of a peer.

        `issuer` is given where its key is not known: an identity in its stored form.
        """
        super().__init__(detail, reason=reason, link=link, issuer=issuer)

    @property
    def next_step(self) -> str:
        """An issuer that is not known may be admitted; the token is as good as any other then."""
        issuer = self.facts.get("issuer")
        if issuer is None:
            return super().next_step
        return f"Ask the operator to admit its issuer: carnet peers add {issuer} --key BASE64"


class DelegationWidened(Refused, code="delegation_widened", public=("link", "claim")):
    """A token of the chain grants more than the one it was derived from: a delegation narrows."""

    template = "Link {link} of the delegation widens '{claim}' of the one before it."
    hint = "Issue it anew with no more than its parent grants: carnet tokens delegate --parent."

    def __init__(self, detail: str = "", /, *, claim: str = "scope", link: int = 2) -> None:
        """`claim` is the name of a claim that we know."""
        super().__init__(detail, claim=claim, link=link)


class DelegationExceeded(Refused, code="delegation_exceeded", public=("reason",)):
    """The delegation does not reach as far as this call: its hops or its scope are used up.

    Of `--depth 2` one hop is for who shows the token and one for a call that the agent makes.
    """

    template = "The delegation does not cover this call: {reason}."
    hint = "Ask its issuer for one with the skill in --scope, or a larger --depth."

    def __init__(self, detail: str = "", /, *, reason: str = "no hop is left") -> None:
        """`reason` is one of our own phrases."""
        super().__init__(detail, reason=reason)


class DelegationReplayed(Refused, code="delegation_replayed", status=401, public=("link",)):
    """A delegation token that is good for one call was used before.

    All that was derived from it is used up with it. Link 1 is the first token of the chain.
    """

    template = "Link {link} of the delegation is good for one call, which was made."
    hint = "Ask its issuer for another one."

    def __init__(self, detail: str = "", /, *, link: int = 1) -> None:
        """`link` is the one that is good for one call."""
        super().__init__(detail, link=link)
