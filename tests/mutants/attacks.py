"""The behaviour behind rows of attacks and faults, each taken away by one change of the source."""

from tests.mutants.mutant import Mutant

SIGNATURES = (
    Mutant(
        "security:a02:one",
        "wire/crypto/signatures.py",
        "if len(inputs) != 1 or inputs.keys() != values.keys():",
        "if inputs.keys() != values.keys():",
    ),
    Mutant(
        "security:a01:missing",
        "wire/crypto/signatures.py",
        "raise SignatureMissing",
        'raise SignatureInvalid("none")',
    ),
    Mutant(
        "security:a03:body",
        "wire/crypto/digests.py",
        "if digests[name] != expected:",
        "if False:",
        tests=("test_a_body_that_was_changed_does_not_match_its_digest",),
    ),
    Mutant("security:a05:digest-form", "wire/crypto/digests.py", "if not known:", "if False:"),
    Mutant(
        "security:a06:coverage",
        "wire/stamps/stamp.py",
        "if not covered.issuperset(least):",
        "if False:",
        tests=("test_whatever_is_not_covered_is_missed",),
    ),
    Mutant(
        "security:a07:headers",
        "wire/stamps/__init__.py",
        'prefixes=("x-actor-",)',
        'prefixes=("x-actress-",)',
        tests=("test_a_header_of_chain_or_identity_beside_the_signature_is_refused",),
    ),
    Mutant(
        "security:a17:expires",
        "guards/proof/signature.py",
        "if ends <= now or ends < proof.at:",
        "if False:",
    ),
    Mutant(
        "security:a16:window",
        "guards/proof/signature.py",
        "<= window.past * SECOND_US:",
        "<= window.past * 2 * SECOND_US:",
        tests=("test_the_window_ends_where_it_should",),
    ),
    Mutant(
        "security:a21:weak",
        "wire/crypto/ed25519.py",
        "if not crypto_core_ed25519_is_valid_point(raw):",
        "if False:",
    ),
    Mutant(
        "security:a25:syntax",
        "wire/crypto/signatures.py",
        "text=entry.text,",
        'text=entry.text.replace(" ", ""),',
    ),
)

SECURITY = (
    Mutant(
        "security:a28:jwt", "wire/crypto/jws.py", "if not header.keys() <= _MEMBERS:", "if False:"
    ),
    Mutant(
        "security:a30:widened",
        "core/people/delegation.py",
        '"exp": child.expires > parent.expires,',
        '"exp": False,',
    ),
    Mutant(
        "security:a30:links",
        "core/people/delegation.py",
        "if link.expires * SECOND_US <= now:",
        "if False:",
        tests=("test_an_expired_link_is_named",),
    ),
    Mutant(
        "security:a31:hops",
        "core/people/delegation.py",
        "if has_twice or any(map(is_own, (*acted, *last.actors))):",
        "if False:",
        tests=("test_a_chain_that_is_too_long_or_comes_back_is_refused",),
    ),
    Mutant(
        "security:a33:unlisted",
        "guards/limits.py",
        "raise ForwardingNotAllowed",
        "return self._own(candidate.token)",
        tests=("test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody",),
    ),
    Mutant(
        "security:a44:deadline",
        "runtime/turns/replay.py",
        "elif not pause:",
        "elif pause < 0:",
        tests=("test_a_copy_that_has_less_time_than_the_turn_is_told_to_come_again",),
    ),
    Mutant(
        "security:a49:differential",
        "http/link.py",
        'if named[b"transfer-encoding"].strip(b" \\t").lower() != b"chunked":',
        'if named[b"transfer-encoding"].strip(b" \\t").lower() == b"chunked":',
    ),
    Mutant(
        "security:a67:timing",
        "stores/calls/records.py",
        "if reader is not None and not await self._database.fetch(_TAKES_PART, (run, reader)):",
        "if run is None:",
        tests=("test_who_asks_for_what_is_anothers_costs_what_nobodys_costs",),
    ),
    Mutant(
        "security:a34:malformed",
        "wire/stamps/tangle.py",
        "[\\x21-\\x2b\\x2d-\\x7e]{1,8192}",
        "[\\x20-\\x7e]{1,8192}",
        tests=("test_a_malformed_forwarded_credential_is_refused",),
    ),
    Mutant(
        "security:a36:claims",
        "wire/grammar/headers.py",
        'raise MalformedCallerContext(f"{prefix}*"',
        'MalformedCallerContext(f"{prefix}*"',
        tests=("test_lookalike_spellings_are_refused",),
    ),
    Mutant(
        "security:a38:malformed",
        "wire/grammar/headers.py",
        "if sum(name == key for name, _ in self.raw) > 1:",
        "if False:",
        tests=("test_a_repeated_depth_is_refused",),
    ),
    Mutant(
        "security:a39:limit",
        "core/chain/carnet.py",
        "        raise DepthExceeded(\n            observed=position.depth,",
        "        return\n        DepthExceeded(\n            observed=position.depth,",
        tests=("test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs",),
    ),
    Mutant(
        "security:a41:reuse",
        "core/call.py",
        r"{payer.id}\0{actor}",
        "{payer.id}",
        tests=("test_two_who_forward_the_same_payer_do_not_share_what_agents_call",),
    ),
    Mutant(
        "security:a42:poison",
        "core/chain/turn_id.py",
        "{parent_key[:SCOPE_BYTES].hex()}",
        "scope",
        tests=("test_a_turn_claimed_in_advance_does_not_poison_a_call_to_a_peer",),
    ),
    Mutant(
        "security:a43:mismatch",
        "core/chain/turn.py",
        "if not same_digest:",
        "if False:",
        tests=("test_the_same_turn_with_another_request_is_refused_and_the_first_stays",),
    ),
)

RESOURCES = (
    Mutant(
        "security:a53:json", "wire/grammar/json.py", "if len(members) != len(pairs):", "if False:"
    ),
    Mutant(
        "security:a54:cost",
        "wire/grammar/json.py",
        "if members_in(body, max_members) > max_members:",
        "if False:",
    ),
    Mutant(
        "security:a58:outbound",
        "wire/grammar/headers.py",
        'if bare != value or not (value.isascii() and value.replace("\\t", " ").isprintable()):',
        "if False:",
    ),
    Mutant(
        "security:a59:sse",
        "wire/grammar/sse.py",
        'if b"\\n" in data or b"\\r" in data:',
        "if False:",
    ),
    Mutant(
        "security:a60:collector",
        "runtime/traces/exporter.py",
        "if len(self._waiting) >= self._most:",
        "if False:",
        tests=("test_what_waits_is_bounded_and_the_rest_is_counted",),
    ),
    Mutant(
        "security:a60:labels",
        "runtime/traces/ends.py",
        "if len(self._peers) >= MOST_PEERS:",
        "if False:",
    ),
    Mutant(
        "security:a60:log",
        "telemetry.py",
        'return _SECRETS.sub("***", text)\n',
        "return text\n",
    ),
    Mutant(
        "security:a68:guessing",
        "guards/caller/failures.py",
        "= Memo(MOST_SOURCES)",
        "= Memo(1 << 60)",
    ),
    Mutant(
        "security:a69:wallet",
        "guards/limits.py",
        "if count >= self._most_calls:",
        "if False:",
    ),
    Mutant(
        "security:a36:proxies",
        "http/proxies.py",
        "if not self._is_proxy(hop.address):",
        "if False:",
    ),
    Mutant(
        "security:a48:framing",
        "http/link.py",
        'if b"content-length" in named:\n            raise',
        "if False:\n            raise",
        tests=("test_any_other_head_is_refused",),
    ),
)

FAULTS = (
    Mutant(
        "faults:f29",
        "runtime/webhooks/schedule.py",
        "if made >= len(self._schedule):",
        "if made >= len(self._schedule) - 1:",
        tests=("test_a_delivery_is_tried_ten_times_by_the_schedule_and_is_then_dead",),
    ),
    Mutant(
        "faults:f29",
        "runtime/webhooks/schedule.py",
        "return min(self.wait, MOST_ASKED_SECONDS)",
        "return None",
        tests=("test_who_says_how_long_to_wait_is_waited_for",),
    ),
    Mutant(
        "faults:f29",
        "runtime/webhooks/schedule.py",
        "JITTER: Final = 0.1",
        "JITTER: Final = 0.0",
        tests=("test_the_jitter_is_a_tenth_either_way",),
    ),
    Mutant(
        "faults:f29",
        "runtime/webhooks/schedule.py",
        "_TAKEN: Final = range(200, 300)",
        "_TAKEN: Final = range(200, 400)",
        tests=("test_a_redirect_is_a_failure_that_says_so",),
    ),
    Mutant(
        "faults:i10",
        "runtime/webhooks/schedule.py",
        "return None if due > begun + self._lasts_us else due",
        "return due",
        tests=("test_a_delivery_that_was_put_off_again_and_again_dies_an_hour_after_the_schedule",),
    ),
    Mutant(
        "faults:f23",
        "runtime/wrappers/breaker.py",
        "return since + self._cooldown_seconds - self._clock.monotonic()",
        "return since + self._cooldown_seconds - self._clock.wall_us() / 1e6",
        tests=("test_a_jump_of_the_wall_clock_changes_nothing",),
    ),
    Mutant(
        "faults:f23",
        "runtime/clock_skew.py",
        "before, self._apart_us = self._apart_us, self._apart()",
        "before = self._apart_us",
        tests=("test_f23_a_clock_that_is_slowly_corrected_is_no_step",),
    ),
    Mutant(
        "faults:f16",
        "runtime/wrappers/breaker.py",
        "self._failures >= self._failures_to_open",
        "False",
        tests=("test_f16_the_circuit_opens_after_repeated_failures_and_nothing_is_sent",),
    ),
    Mutant(
        "security:budget:crash",
        "stores/turn/budgets.py",
        "self._move(above, part, row.total(part), -limit)",
        "self._move(above, part, 0, -limit)",
        tests=(
            "test_in_any_order_children_never_have_more_than_their_parent_and_nothing_stays_held",
        ),
    ),
    Mutant(
        "security:budget:crash",
        "stores/turn/budgets.py",
        "self._move(above, part, spent + held, 0)",
        "pass",
        tests=("test_a_share_that_is_closed_gives_back_what_is_released_later",),
    ),
    Mutant(
        "security:budget:narrows",
        "guards/admission/budgets.py",
        "allowance.narrow(taken.left)",
        "pass",
        tests=("test_what_a_caller_says_only_narrows_what_was_set",),
    ),
    Mutant(
        "faults:f24",
        "core/people/proof.py",
        '"samvad": Window(past=300, future=60)',
        '"samvad": Window(past=30, future=6)',
        tests=("test_a_clock_that_differs_a_little_is_no_obstacle",),
    ),
)
