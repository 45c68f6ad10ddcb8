"""The behaviour behind rows about identities, each taken away by one change of the source."""

from tests.mutants.mutant import Mutant

_STRICT = ("test_a_credential_that_is_not_right_in_every_part_is_refused",)
_ASIDE = ("test_evidence_that_is_not_right_is_set_aside_and_shown_and_the_call_goes_on",)

_PRESENTED = ("test_what_is_not_right_is_set_aside_and_shown_and_the_call_goes_on",)

_ASSERTION = ("test_an_assertion_that_is_not_right_is_refused_in_its_word",)

IDENTITY = (
    Mutant(
        "mentionable:identity:federation",
        "runtime/identity/exchange.py",
        'if claims["aud"] != resource_of(self._parts.url, agent):',
        "if False:",
        tests=("test_an_assertion_of_a_user_is_exchanged_for_a_token_of_the_agent",),
    ),
    Mutant(
        "mentionable:identity:federation-request",
        "runtime/identity/exchange.py",
        "if subject.task is not None and asked.wants_messages:",
        "if False:",
        tests=("test_who_goes_on_with_a_task_does_nothing_else",),
    ),
    Mutant(
        "mentionable:identity:federation-assertion",
        "wire/identity/assertion.py",
        "if audience not in (endpoint, [endpoint]):",
        "if False:",
        tests=_ASSERTION,
    ),
    Mutant(
        "mentionable:identity:federation-assertion",
        "runtime/identity/exchange.py",
        "if not self._admits(subject, agent):",
        "if False:",
        tests=_ASSERTION,
    ),
    Mutant(
        "mentionable:identity:federation-once",
        "runtime/identity/exchange.py",
        "if not is_unused:",
        "if False:",
    ),
    Mutant(
        "mentionable:identity:federation-tasks",
        "gateway/own_tasks/asker.py",
        "if asker.caller is not None and asker.caller.task not in {None, task}:",
        "if False:",
        tests=("test_who_goes_on_with_a_task_does_nothing_else",),
    ),
    Mutant(
        "mentionable:identity:federation-sent",
        "runtime/peers/a2a/federation.py",
        "if not self._leads(offer.server):",
        "if False:",
        tests=("test_a_server_that_the_card_names_elsewhere_is_not_asked",),
    ),
    Mutant(
        "mentionable:identity:credentials",
        "guards/caller/platform_credential.py",
        "if stated.challenge != message:",
        "if False:",
        tests=_PRESENTED,
    ),
    Mutant(
        "mentionable:identity:credentials",
        "guards/caller/platform_credential.py",
        "if not self._policy.admits(found):",
        "if False:",
        tests=_PRESENTED,
    ),
    Mutant(
        "mentionable:identity:credentials-refresh",
        "runtime/identity/dids.py",
        "if again and (self._again.get(site) != found.tried or self._known.is_due(found)):",
        "if again:",
        tests=("test_a_key_that_is_not_there_has_the_document_fetched_anew_once",),
    ),
    Mutant(
        "mentionable:identity:credentials-once",
        "guards/single_use.py",
        "if not is_unused:",
        "if False:",
        tests=("test_a_credential_is_good_once_and_not_burnt_by_a_forgery",),
    ),
    Mutant(
        "mentionable:identity:credentials-kept",
        "wire/dialects/a2a/extensions/identity.py",
        "secrets=spellings(VERIFIABLE_CREDENTIALS),",
        "secrets=(),",
        tests=("test_it_is_neither_recorded_nor_told_again",),
    ),
    Mutant(
        "mentionable:identity:credentials-made",
        "runtime/agents/a2a_peer.py",
        'made = attesting.platform_credential(call, audience, message["messageId"])',
        'made = attesting.platform_credential(call, audience, "m")',
    ),
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
        tests=("test_nothing_is_fetched_for_a_credential_where_no_agent_is_for_everybody",),
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
        "gateway/own_tasks/asker.py",
        """speakers = f"{standing.sender}#" if standing.subject is None else None""",
        """speakers = f'{standing.sender}#'""",
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
        "if not ed25519.holds(key, await covered(stated.signed, item), stated.signature):",
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
        "guards/single_use.py",
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
