"""What we vouch for in a call: which agent of ours calls, and for whom; and its credential.

Law 1. Evidence is made anew for every recipient, with its one audience, a number that is used once,
       and an end a few minutes away: nothing that came to us goes on as it came (R5, R23).
Law 2. It says what we know: our own agents by their names, people by their tokens, and whom others
       act for by evidence that was verified. What cannot be vouched for is left out.
Law 3. The immediate caller stands first.
Law 4. A credential says that we call, is for one recipient, and is made anew for every request.
       One of a platform says which person of ours does, and is bound to its message as well.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.interrupt import paid
from carnet.core.people.address import AGENT
from carnet.core.people.evidence import CONSENT, MOST_BEHALF, Evidence
from carnet.core.people.identity import Secret
from carnet.core.people.person import Person
from carnet.core.people.proof import SECOND_US
from carnet.core.trust.did import did_of
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock, Ids
from carnet.wire.identity import assertion, attestation, platform_credential
from carnet.wire.identity.credential import write_credential

HOLDS_SECONDS: Final = 300
MAILTO: Final = "mailto"
PERSON_METHOD: Final = "urn:carnet:auth:person:v1"


class Caused(Struct, frozen=True):
    """For whom a call is made, and by what that is known here."""

    subject: str
    method: str


class Attesting:
    """Vouches for the calls of one gateway."""

    def __init__(
        self,
        keys: SigningKeys,
        *,
        domain: str,
        clock: Clock,
        ids: Ids,
        people: People | None = None,
        names: str = "handle",
    ) -> None:
        """Vouch for calls.

        Args:
            keys: Ours.
            domain: Ours.
            clock: Tells the time.
            ids: Draws numbers that are used once.
            people: Whose tokens calls begin with.
            names: How they are named: by their handle here, or by an address of mail that was
                verified to be theirs (`mailto`), where they have one.
        """
        self._keys = keys
        self.domain = domain
        self._clock = clock
        self._ids = ids
        self._people = people
        self._names = names

    def subject(self, call: Call) -> str:
        """Who calls: the agent of ours that does, or this gateway."""
        path = call.carnet.path
        if path and path[-1].endswith(f"@{self.domain}"):
            return path[-1]
        return AGENT + self.domain

    def evidence(self, call: Call, audience: str) -> dict[str, object]:
        """What we vouch for, for one recipient."""
        issued = self._clock.wall_us() // SECOND_US
        signer = self._keys.signer()
        made = Evidence(
            id=self._ids.token(),
            subject=self.subject(call),
            issuer=self.domain,
            method=attestation.METHOD,
            assurance=attestation.ASSURANCE,
            audience=(audience,),
            issued=issued,
            expires=issued + HOLDS_SECONDS,
            on_behalf_of=self._behalf(call),
            claims=_consent(call),
        )
        return attestation.write(made, kid=signer.kid, sign=signer.sign)

    def cause(self, call: Call) -> Caused:
        """For whom a call is made: a person of ours, else the agent that calls."""
        person = self._person(call)
        if person is None:
            return Caused(self.subject(call), attestation.METHOD)
        return Caused(self._name(person), PERSON_METHOD)

    def assertions(self, cause: Caused, endpoint: str, task: str | None) -> tuple[str, str]:
        """What is exchanged for an access token, and what says that we ask; each used once.

        With a `task` it is to go on with that, and for nothing else.
        """
        issued, did = self._clock.wall_us() // SECOND_US, did_of(self.domain)
        signer = self._keys.signer()
        client = assertion.Assertion(
            typ=assertion.CLIENT,
            issuer=did,
            subject=did,
            issued=issued,
            expires=issued + HOLDS_SECONDS,
            id=self._ids.token(),
            keyid=f"{did}#{signer.kid}",
        )
        subject = replace(
            client,
            typ=assertion.SUBJECT if task is None else assertion.CONTINUATION,
            subject=cause.subject,
            id=self._ids.token(),
            method=cause.method if task is None else None,
            task=task,
        )
        first, second = (
            assertion.write(each, endpoint, sign=signer.sign) for each in (subject, client)
        )
        return first, second

    def platform_credential(self, call: Call, audience: str, message: str) -> dict[str, object]:
        """Who uses this gateway, for one recipient and one message."""
        issued = self._clock.wall_us() // SECOND_US
        signer, did, cause = self._keys.signer(), did_of(self.domain), self.cause(call)
        is_person = cause.method == PERSON_METHOD
        made = Evidence(
            id=f"urn:uuid:{self._ids.uuid()}",
            subject=cause.subject,
            issuer=did,
            method=cause.method,
            assurance="platform" if is_person else attestation.ASSURANCE,
            audience=(audience,),
            issued=issued,
            expires=issued + HOLDS_SECONDS,
            source={
                "platform": {"provider": "carnet", "workspace_id": self.domain},
                "observedInvocation": {"target": audience},
            },
        )
        method = f"{did}#{signer.kid}"
        return platform_credential.write(made, challenge=message, method=method, sign=signer.sign)

    def credential(self, audience: str, subject: str | None = None) -> Secret:
        """What says who calls, to one recipient and once."""
        signer = self._keys.signer()
        token = write_credential(
            issuer=self.domain,
            subject=subject or self.domain,
            audience=audience,
            issued=self._clock.wall_us() // SECOND_US,
            nonce=self._ids.token(),
            kid=signer.kid,
            sign=signer.sign,
            seconds=HOLDS_SECONDS,
        )
        return Secret(f"Bearer {token}")

    def _behalf(self, call: Call) -> tuple[str, ...]:
        """For whom it is made, the immediate caller first."""
        carnet, subject = call.carnet, self.subject(call)
        before = [name for name in reversed(carnet.path) if name != subject]
        found = [*before, *self._origin(call, is_shown=bool(before)), *carnet.on_behalf_of]
        return tuple(dict.fromkeys(found))[:MOST_BEHALF]

    def _origin(self, call: Call, *, is_shown: bool) -> list[str]:
        """Who began it here: a person, or an organisation whose path does not tell."""
        caller = call.caller
        actor = caller.origin or caller.actor
        if actor.domain is not None:
            is_peer = actor.how != "a2a-oauth" and not is_shown
            return [AGENT + actor.domain] if is_peer else []
        person = self._person(call)
        return [] if person is None else [self._name(person)]

    def _person(self, call: Call) -> Person | None:
        """Whose token it began with here."""
        number = call.caller.person
        return None if number is None or self._people is None else self._people.numbered(number)

    def _name(self, person: Person) -> str:
        if self._names == MAILTO:
            for each in person.addresses:
                if each.how == "verified" and each.address.startswith("mailto:"):
                    return each.address
        return person.handle(self.domain)


def _consent(call: Call) -> dict[str, str]:
    """Whether whom it is for has agreed to pay, as far as we know (R41)."""
    if call.resolved and paid(call.resolved):
        return {CONSENT: "payment"}
    given = call.delegation
    has_budget = given is not None and given.budget is not None and bool(given.budget.money)
    return {CONSENT: "delegation"} if has_budget else {}
