"""The behaviour behind the rows of dialects, each taken away by one small change of the source."""

from tests.mutants.mutant import Mutant

TANGLE = (
    Mutant(
        "tangle:depth:refuse",
        "core/chain/carnet.py",
        "position.depth > position.last_depth:",
        "position.depth > position.last_depth + 1:",
    ),
    Mutant(
        "tangle:depth:increment",
        "wire/stamps/tangle.py",
        "depth=inbound_depth + 1,",
        "depth=inbound_depth,",
    ),
    Mutant("tangle:depth:monotonic", "core/chain/carnet.py", "depth=self.depth + 1,", "depth=1,"),
    Mutant(
        "tangle:depth:refuse-before-dialling",
        "core/chain/carnet.py",
        "return self.depth >= self.bound(default)",
        "return False",
    ),
    Mutant(
        "tangle:depth:malformed",
        "wire/grammar/headers.py",
        "if not digits.isdigit():",
        "if digits != digits:",
    ),
    Mutant(
        "tangle:authorization:malformed",
        "wire/stamps/tangle.py",
        "if _BEARER.fullmatch(value) is None:",
        "if not value:",
    ),
    Mutant(
        "tangle:authorization:verbatim",
        "wire/stamps/tangle.py",
        "return Secret(value)",
        "return Secret(value.lower())",
    ),
    Mutant(
        "tangle:authorization:listed-peers",
        "guards/target/target.py",
        "raise PeerNotListed",
        "return",
    ),
    Mutant(
        "tangle:authorization:origin",
        "guards/limits.py",
        "candidate.credential = claim.authorization",
        "candidate.credential = None",
    ),
    Mutant("tangle:endpoint:listed", "guards/limits.py", "if not actor.may_forward:", "if False:"),
    Mutant(
        "tangle:run:unchanged",
        "core/chain/carnet.py",
        "run=self.run,\n            turn=",
        'run=self.run + "x",\n            turn=',
    ),
    Mutant(
        "tangle:turn:format",
        "core/chain/turn_id.py",
        '"{run}.t{index}.{slug(speaker)}"',
        '"{run}.{index}.{slug(speaker)}"',
    ),
    Mutant("tangle:turn:slug", "core/chain/turn_id.py", ".lower() or ANONYMOUS", ".lower()"),
    Mutant(
        "tangle:turn:own-scope",
        "core/chain/turn_id.py",
        "{parent_key[:SCOPE_BYTES].hex()}",
        "scope",
    ),
    Mutant(
        "tangle:parent:nested",
        "core/chain/carnet.py",
        "parent_turn=None if self.opens_the_run else self.turn",
        "parent_turn=None",
    ),
    Mutant(
        "tangle:headers:omitted",
        "wire/grammar/headers.py",
        "return [field for field in fields.items() if field[1]]",
        "return [*fields.items()]",
    ),
    Mutant(
        "tangle:headers:bounded",
        "wire/grammar/headers.py",
        "if len(value) > max_bytes:",
        "if False:",
    ),
    Mutant(
        "tangle:version:unsupported",
        "wire/stamps/tangle.py",
        "raise UnsupportedProtocolVersion",
        "return None",
    ),
    Mutant("tangle:idempotency:key", "core/call.py", r"\0{actor}\0{agent}", r"\0{agent}"),
    Mutant(
        "tangle:refusal:message",
        "errors/refused_call.py",
        """{words} at depth {self.facts['observed']}; {what} here is {self.facts['limit']}.""",
        "{words} too deep; {what} here was reached.",
    ),
    Mutant(
        "tangle:stack:every-section",
        "wire/stamps/tangle.py",
        'SPEAKER: _label(speaker or ""),',
        'SPEAKER: "",',
    ),
    Mutant(
        "tangle:consumer:merge",
        "wire/stamps/tangle.py",
        "RUN_ID: run,",
        'RUN_ID: "",',
        ("test_every_outbound_agent_call_carries_depth_run_turn_parent_and_speaker",),
    ),
    Mutant("tangle:reference:headers", "wire/stamps/tangle.py", "run=run_id,", "run=turn_id,"),
    Mutant(
        "tangle:reference:names",
        "wire/stamps/tangle.py",
        'PARENT_TURN_ID: parent_turn or "",',
        'PARENT_TURN_ID: "",',
    ),
    Mutant(
        "tangle:reference:call-policy",
        "runtime/dialogue/policy.py",
        "if not (self.retry_on or is_passing)(error):",
        "if True:",
    ),
    Mutant(
        "tangle:reference:journal",
        "runtime/dialogue/book.py",
        "events = [] if pages is None else await pages.read()",
        "events: list[DialogueEvent] = []",
        ("test_a_driver_survives_a_kill_at_every",),
    ),
    Mutant(
        "tangle:reference:turn-id",
        "core/chain/turn_id.py",
        '"{run}.t{index}.{slug(speaker)}"',
        '"{run}.t{index + 1}.{slug(speaker)}"',
    ),
    Mutant(
        "tangle:reference:gateway",
        "core/chain/carnet.py",
        "position.depth > position.last_depth:",
        "position.depth > position.last_depth + 99:",
    ),
    Mutant(
        "tangle:status:direct-calls",
        "core/chain/carnet.py",
        "position.depth > position.last_depth:",
        "position.depth > position.last_depth + 1:",
        ("test_a_chain_is_answered_at_depth_three_and_refused_at_four",),
    ),
)

AGENTS_API_BODY = (
    Mutant(
        "agents-api:run:claimed",
        "stores/turn/claim_rules.py",
        "claim.exactly_once and claim.resolution is None",
        "False",
    ),
    Mutant(
        "agents-api:run:session",
        "guards/admission/tasks.py",
        "found.context != context",
        "found.context == context",
    ),
    Mutant(
        "agents-api:action:decision",
        "wire/dialects/agents_api/request.py",
        'decision not in ("accepted", "rejected")',
        'decision not in ("accepted", "rejected", "approved")',
    ),
    Mutant(
        "agents-api:body:stripped",
        "wire/dialects/agents_api/chat_input.py",
        "if name not in STRIPPED",
        "if True",
    ),
    Mutant(
        "agents-api:body:tools",
        "wire/dialects/agents_api/chat_input.py",
        "if calls.keys() != results.keys():",
        "if False:",
    ),
    Mutant(
        "agents-api:action:envelope",
        "wire/dialects/agents_api/outcome.py",
        '"completed": status == COMPLETED,',
        '"completed": True,',
    ),
    Mutant(
        "agents-api:outbound:context",
        "wire/stamps/caller_context.py",
        'toward="agents_api",',
        'toward="nobody",',
    ),
)

AGENTS_API = (
    Mutant(
        "agents-api:headers:fail-closed",
        "wire/stamps/caller_context.py",
        "raise MalformedCallerContext(_HEADER_OF[invalid.field], invalid.reason) from None",
        "return None, None",
    ),
    Mutant(
        "agents-api:depth:limit",
        "wire/stamps/caller_context.py",
        "last_depth=last_depth,  # agents-api:depth:limit",
        "last_depth=last_depth + 1,",
    ),
    Mutant(
        "agents-api:depth:default",
        "config/settings.py",
        'the last depth that is answered."\n    ] = 16',
        'the last depth that is answered."\n    ] = 15',
    ),
    Mutant(
        "agents-api:context:root",
        "wire/stamps/caller_context.py",
        "run=found.root,\n",
        "run=None,\n",
    ),
    Mutant(
        "agents-api:trust:claims",
        "guards/context.py",
        "            verified = _has_signed(stated.host, proof) or _is_certified(stated, host)\n",
        "            verified = True\n",
        ("test_a_claimed_root_is_kept_and_joins_no_run",),
    ),
    Mutant(
        "agents-api:trust:registry",
        "stores/trust/callers.py",
        "is_in_time = host.former_until is not None and now < host.former_until",
        "is_in_time = True",
        ("test_a_rotated_key_holds_beside_the_one_before_until_that_ends",),
    ),
    Mutant(
        "agents-api:trust:certificate",
        "gateway/partners/certified.py",
        "        if not exchange.line.is_proxied:\n            return None\n",
        "",
        ("test_a_header_from_an_address_that_is_no_proxys_verifies_nobody",),
    ),
    Mutant(
        "agents-api:policy:adapter",
        "runtime/agents/http_engine.py",
        "asks_policy=turn.ask_policy is not None,",
        "asks_policy=False,",
        ("test_it_is_asked_before_each_tool_with_all_that_the_gateway_knows",),
    ),
    Mutant(
        "agents-api:depth:outward",
        "assembly/agents/agents.py",
        'chain=_CHAINS.get(type(agent), "tangle"),',
        'chain="tangle",',
        ("test_a_budget_of_the_token_above_tangles_default_holds_there",),
    ),
    # The gateway ignores the headers.
    *(
        Mutant(
            row,
            "wire/stamps/caller_context.py",
            "    claimed, mark = read(headers, last_depth=last_depth)\n    if mark is None:\n",
            "    claimed, mark = read(Headers(()), last_depth=last_depth)\n    if mark is None:\n",
        )
        for row in (
            *("agents-api:context:recover", "agents-api:context:fields"),
            *("agents-api:context:metadata", "agents-api:context:cross-site"),
            *("agents-api:resolution:beside-token", "agents-api:facts:parsing"),
            *("agents-api:acceptance:principal", "agents-api:depth:bound-shown"),
            *("agents-api:context:root", "agents-api:context:host"),
            *("agents-api:headers:fail-closed", "agents-api:headers:names"),
            *("agents-api:depth:default", "agents-api:depth:reference-host"),
            *("agents-api:trust:claims", "agents-api:token:touched-last"),
            "agents-api:facts:first-of-a-list",
        )
    ),
    Mutant(
        "agents-api:depth:budget",
        "core/chain/carnet.py",
        "if IterationBudget(CHAIN_DEPTH, ceiling, place.depth).exceeded:",
        "if False:",
        ("test_a_call_at_the_ceiling_of_an_agent_is_refused_and_told_all_of_it",),
    ),
    Mutant(
        "agents-api:loop:tool-budget",
        "engine/toolbox.py",
        "return None if self._budgets.use(call) else",
        "return None if self._budgets.use(call) or True else",
        (
            "test_of_three_calls_in_one_answer_the_two_are_made_that_a_budget_has",
            "test_a_budget_of_one_tool_leaves_the_others_alone",
        ),
    ),
    Mutant(
        "agents-api:loop:turns-budget",
        "engine/loop.py",
        "            self._budgets.ask()\n",
        "",
        ("test_a_model_is_not_asked_more_often_than_its_turns",),
    ),
    Mutant(
        "agents-api:loop:wall-clock",
        "engine/budgets.py",
        "self._budgets[key] = budget.at(elapsed)",
        "pass",
        ("test_a_model_is_not_asked_again_when_its_time_is_over",),
    ),
    Mutant(
        "a2a:extension:budget",
        "wire/dialects/a2a/extensions/own.py",
        'budget=read_budget(given.get("budget")), ',
        "",
        ("test_a_budget_in_our_chain_only_lowers_what_may_be_spent",),
    ),
    Mutant(
        "agents-api:ceiling:deny-wins",
        "core/people/identity.py",
        "(self.deny and allows(self.deny, permission))",
        "False",
        ("test_a_ceiling_bounds_what_a_token_may_do_and_deny_wins",),
    ),
    Mutant(
        "agents-api:ceiling:safe-default",
        "core/principal.py",
        "return SAFE_DEFAULT if is_autonomous else NO_CEILING",
        "return NO_CEILING",
        ("test_an_autonomous_token_may_not_pay_unless_somebody_wrote_that_down",),
    ),
    Mutant(
        "agents-api:principal:owner",
        "core/principal.py",
        'if self.acting_user and self.auth_source != "agent_token":',
        "if self.acting_user:",
        ("test_a_token_that_stands_for_an_agent_owns_by_the_token_also_of_a_person",),
    ),
    Mutant(
        "agents-api:policy:adapter",
        "guards/admission/policy.py",
        "            await policy.ask_call(entry.admitted)\n",
        "            pass\n",
        ("test_what_it_denies_is_refused_and_runs_nothing",),
    ),
    Mutant(
        "agents-api:context:top",
        "wire/stamps/caller_context.py",
        "if self.agent or self.user or self.host:",
        "if False:",
    ),
    Mutant(
        "agents-api:context:host",
        "wire/stamps/caller_context.py",
        "_ABSOLUTE_URL.fullmatch(value) is not None",
        "bool(value)",
    ),
    Mutant(
        "agents-api:headers:names",
        "wire/stamps/caller_context.py",
        'CHAIN_DEPTH: Final = "X-Agents-Api-Chain-Depth"',
        'CHAIN_DEPTH: Final = "X-Agents-Api-Depth"',
    ),
    Mutant(
        "agents-api:headers:top-round-trip",
        "wire/stamps/caller_context.py",
        "if self.chain_depth:\n",
        "if True:\n",
    ),
    Mutant(
        "agents-api:acceptance:tests",
        "wire/stamps/caller_context.py",
        "depth=found.depth,",
        "depth=None,",
    ),
    Mutant(
        "agents-api:acceptance:value-and-headers",
        "wire/stamps/caller_context.py",
        "CHAIN_DEPTH: str(self.chain_depth),",
        'CHAIN_DEPTH: "1",',
    ),
)

SAMVAD = (
    Mutant(
        "samvad:envelope:unknown-field",
        "wire/dialects/samvad/envelope.py",
        "if not fields.keys() <= _FIELDS:",
        "if False:",
    ),
    Mutant(
        "samvad:envelope:mode-endpoint",
        "wire/dialects/samvad/envelope.py",
        "if mode != served:",
        "if False:",
    ),
    Mutant(
        "samvad:envelope:nonce", "wire/dialects/samvad/envelope.py", "[!-~]{8,64}", "[!-~]{1,64}"
    ),
    Mutant(
        "samvad:envelope:payload",
        "wire/dialects/samvad/envelope.py",
        "if value is None:  # samvad:envelope:payload\n        return {}",
        'if value is None:\n        raise InvalidRequest("payload", "is missing")',
    ),
    Mutant(
        "samvad:envelope:timestamp",
        "wire/dialects/samvad/envelope.py",
        "(?:Z|\\+00:00)",
        "(?:Z|\\+00:00)?",
    ),
    Mutant(
        "samvad:signature:newline",
        "wire/dialects/samvad/claim.py",
        "return (*bases, *[base[:-1] for base in bases])",
        "return (*bases,)",
    ),
    Mutant(
        "samvad:signature:alone",
        "wire/dialects/samvad/claim.py",
        "if request.query is not None or protected_names(",
        "if request.query == 0 and protected_names(",
    ),
    Mutant(
        "samvad:signature:form",
        "wire/dialects/samvad/claim.py",
        "if presented.label != LABEL or presented.alg != ALGORITHM:",
        "if False:",
    ),
    Mutant(
        "samvad:signature:base",
        "wire/crypto/signatures.py",
        'end = b"\\n" if newline else b""',
        'end = b""',
    ),
    Mutant(
        "samvad:envelope:to",
        "guards/proof/signature.py",
        "elif recipient != self._identities.of(candidate.claim.agent):",
        "elif False:",
    ),
    Mutant(
        "samvad:envelope:mode-skill",
        "guards/target/target.py",
        "_mode(candidate.claim) not in skill.modes",
        "False",
    ),
    Mutant(
        "samvad:envelope:auth",
        "guards/caller/trust.py",
        "authenticated=principal is not None or",
        "authenticated=True or",
    ),
    Mutant(
        "samvad:error:rate-limited",
        "wire/dialects/samvad/refusals.py",
        "if status == _TOO_MANY:",
        "if False:",
    ),
    Mutant(
        "samvad:response:object",
        "wire/dialects/results.py",
        'return {"result": self._result}',
        "return self._result",
    ),
    Mutant(
        "samvad:card:auth",
        "wire/dialects/samvad/card.py",
        'return ["bearer", "none"] if "authenticated" in trusts else ["none"]',
        'return ["none"]',
    ),
    Mutant(
        "samvad:scan:phrases", "guards/target/injection.py", 'r"jailbreak"),', 'r"jailbroken"),'
    ),
    Mutant(
        "samvad:scan:classifier",
        "guards/target/injection.py",
        "if suspicious or (self._classifier and await _classified(self._classifier, payload)):",
        "if suspicious:",
    ),
    Mutant(
        "samvad:scan:doors",
        "guards/target/injection.py",
        "is_chat = by_stranger and (ask.body is not None or ask.payload is None)",
        "is_chat = by_stranger and ask.payload is None",
        tests=("test_whatever_a_stranger_says_in_a_chat_is_scanned_also_beside_a_payload",),
    ),
    Mutant(
        "samvad:delegation:depth",
        "core/people/delegation.py",
        "if last.hops < 1:",
        "if last.hops < 0:",
    ),
)

TRAVEL = (
    Mutant(
        "travel:claims:time",
        "wire/travel/document.py",
        "<= MOST_SECONDS:",
        "<= MOST_SECONDS * 100:",
    ),
    Mutant(
        "travel:header:form",
        "wire/travel/document.py",
        "jws.read(value, typ=TYPE, max_bytes=MAX_BYTES)",
        "jws.read(value, typ=TYPE, max_bytes=2 * MAX_BYTES)",
    ),
    Mutant(
        "travel:header:covered",
        "wire/stamps/stamp.py",
        "if not covered.issuperset(protected_names(headers, stamps)):",
        "if False:",
    ),
    Mutant(
        "travel:claims:digest",
        "wire/travel/document.py",
        "digests.check(document.digest, body)",
        "pass",
    ),
    Mutant(
        "travel:rules:other-stamps",
        "guards/proof/travel.py",
        "if any(one is not None and one != other",
        "if False and any(one is not None and one != other",
    ),
    Mutant(
        "travel:rules:known-key",
        "guards/proof/travel.py",
        "if document.keyid != proof.keyid or proof.sender != AGENT + document.issuer:",
        "if False:",
    ),
    Mutant(
        "travel:rules:narrows",
        "wire/travel/document.py",
        "last_depth=min(document.last_depth, last_depth),",
        "last_depth=document.last_depth,",
    ),
    Mutant("travel:rules:loop", "guards/proof/travel.py", "raise LoopDetected", "return"),
    Mutant(
        "travel:claims:addressed", "wire/travel/document.py", "check_domain(claims.aud)", "pass"
    ),
    Mutant(
        "travel:claims:path", "wire/travel/document.py", "path=list(document.path),", "path=[],"
    ),
    Mutant(
        "travel:receipt:form",
        "wire/travel/receipt.py",
        "max_d=receipt.max_depth,",
        "max_d=0,",
        tests=("test_the_receipt_counts_the_calls_below_and_how_deep_they_went",),
    ),
    Mutant(
        "travel:receipt:tree",
        "runtime/receipts/issue.py",
        "below=travel.links_to(counted.receipts) if counted.receipts else None,",
        "below=None,",
        tests=("test_a_receipt_that_is_left_out_is_missed",),
    ),
)

ENGINE = (
    Mutant(
        "engine:request:no-provider",
        "wire/dialects/engine_chat/request.py",
        "return _KEPT_OUT.get(",
        'return {}.get("" + ',
    ),
    Mutant(
        "engine:metadata:correlation",
        "wire/dialects/engine_chat/request.py",
        'correlation = _visible(metadata.get("correlation_id"),',
        'correlation = _visible(metadata.get("correlation_id", "none"),',
    ),
    Mutant(
        "engine:stream:done",
        "wire/dialects/engine_chat/writer.py",
        "self._tokens_in += event.tokens_in or 0",
        "self._tokens_in = event.tokens_in or 0",
    ),
    Mutant(
        "engine:error:cause",
        "wire/dialects/engine_chat/refusals.py",
        "errors.ContextTooLong: CONTEXT_OVERFLOW,",
        "errors.ContextTooLong: PROVIDER_ERROR,",
    ),
    Mutant(
        "engine:iterations:optional",
        "engine/loop.py",
        "if n == self._bounds.max_iterations:",
        "if n - 1 == self._bounds.max_iterations:",
        ("test_a_bound_of_iterations_ends_with_its_reason",),
    ),
    Mutant(
        "engine:error:recoverable",
        "engine/toolbox.py",
        'return ToolOutcome("error", FAILED)',
        "raise error",
    ),
    Mutant(
        "engine:auth:tools",
        "engine/tools/turn.py",
        "return tool.permission is None or actor.may(tool.permission)",
        "return True",
    ),
    Mutant(
        "engine:auth:independent",
        "auth/credential.py",
        "if _plain(field[0]) not in _IDENTITY]",
        "if field]",
    ),
    Mutant(
        "engine:security:no-bypass",
        "auth/middleware.py",
        'return ":" in name or self._people.find(name) is not None',
        "return True",
        tests=("test_a_person_who_has_ended_is_nobody_whatever_proves_her",),
    ),
    Mutant(
        "engine:reference:b11",
        "guards/caller/session.py",
        "if not self.cookie.is_own_page(headers):",
        "if False:",
    ),
    Mutant(
        "engine:approval:tool",
        "engine/toolbox.py",
        "if not tool.needs_approval:",
        "if tool:",
    ),
    Mutant(
        "engine:error:401",
        "auth/middleware.py",
        "            raise TokenMissing",
        '            return EngineActor("nobody", Ceiling())',
    ),
)
