"""The behaviour behind rows about identities, each taken away by one change of the source."""

from tests.mutants.mutant import Mutant

_STRICT = ("test_a_credential_that_is_not_right_in_every_part_is_refused",)
_ASIDE = ("test_evidence_that_is_not_right_is_set_aside_and_shown_and_the_call_goes_on",)

IDENTITY = (
    Mutant(
        "mentionable:credential:strict",
        "wire/identity/credential.py",
        "if whose != identity:",
        "if False:",
        tests=("test_nobody_vouches_for_a_name_of_somebody_elses",),
    ),
    Mutant(
        "mentionable:credential:strict",
        "guards/proof/signature.py",
        "if ours.isdisjoint(proof.audiences):",
        "if False:",
        tests=_STRICT,
    ),
    Mutant(
        "mentionable:credential:strict",
        "wire/identity/credential.py",
        "if not issued < expires <= issued + MOST_SECONDS:",
        "if False:",
        tests=_STRICT,
    ),
    Mutant(
        "mentionable:credential:strict",
        "wire/identity/credential.py",
        "token = jws.read(text, typ=TYPE)",
        "token = jws.read(text, typ=None)",
        tests=_STRICT,
    ),
    Mutant(
        "mentionable:credential:unfetched",
        "guards/caller/sender.py",
        'return "public" in tiers',
        "return True",
    ),
    Mutant(
        "mentionable:credential:once",
        "guards/admission/gate.py",
        "nonce=None if claim.proof is None else nonce_of(candidate),",
        "nonce=None,",
        tests=("test_a_credential_is_good_once_and_not_burnt_by_a_forgery",),
    ),
    Mutant(
        "mentionable:credential:tasks",
        "core/people/identity.py",
        "return sender == self.principal",
        "return sender.startswith(self.sender)",
    ),
    Mutant(
        "mentionable:credential:tasks",
        "guards/admission/asker.py",
        "if uses:",
        "if False:",
    ),
    Mutant(
        "mentionable:credential:oauth",
        "wire/identity/access_token.py",
        "if audiences.isdisjoint(claims.audiences):",
        "if False:",
        tests=("test_an_access_token_that_is_not_right_is_refused",),
    ),
    Mutant(
        "mentionable:credential:oauth",
        "wire/crypto/rsa.py",
        "return pow(given, EXPONENT, key.modulus).to_bytes(key.size) == padded",
        "return True",
        tests=("test_an_access_token_that_is_not_right_is_refused",),
    ),
    Mutant(
        "mentionable:evidence:verified",
        "guards/caller/evidence.py",
        "if not self._policy.admits(found):  # before anything is fetched",
        "if False:",
        tests=_ASIDE,
    ),
    Mutant(
        "mentionable:evidence:verified",
        "guards/caller/evidence.py",
        "if not ed25519.holds(key, stated.signed, stated.signature):",
        "if False:",
        tests=_ASIDE,
    ),
    Mutant(
        "mentionable:evidence:rebound",
        "guards/caller/evidence.py",
        "if ours.isdisjoint(found.audience):",
        "if False:",
        tests=_ASIDE,
    ),
    Mutant(
        "mentionable:evidence:once",
        "guards/caller/evidence.py",
        "if not is_unused:",
        "if False:",
        tests=("test_evidence_is_used_by_one_message_which_may_be_repeated",),
    ),
    Mutant(
        "mentionable:evidence:on-behalf-of",
        "runtime/peers/a2a/own_evidence.py",
        "before = [name for name in reversed(carnet.path) if name != subject]",
        "before: list[str] = []",
        tests=("test_one_within_another_stands_before_the_person",),
    ),
    Mutant(
        "mentionable:access:rules",
        "guards/target/access.py",
        "if denied is not None:",
        "if False:",
        tests=("test_who_is_on_no_list_is_told_the_rule_and_whom_to_ask",),
    ),
    Mutant(
        "mentionable:evidence:pays",
        "core/people/grant.py",
        "if is_senders and found.consents and found.principal is not None:",
        "if found.consents and found.principal is not None:",
        tests=("test_nobody_makes_another_organisation_pay",),
    ),
)
