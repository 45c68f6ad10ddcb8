"""The behaviour behind the rows of A2A cards, each taken away by one small change of the source."""

from tests.mutants.mutant import Mutant

A2A = (
    Mutant(
        "a2a:card:presence",
        "wire/dialects/a2a/card/presence.py",
        "if one or fields[name].is_kept}",
        "if one}",
        ("test_a_member_is_covered_by_the_rules_of_presence",),
    ),
    Mutant(
        "a2a:card-sign-001",
        "wire/dialects/a2a/card/presence.py",
        "return members if form == ",
        "return card if form == ",
    ),
    Mutant(
        "a2a:card-sign-002",
        "wire/dialects/a2a/card/presence.py",
        "for name, value in card.items() if name != _SIGNATURES}",
        "for name, value in card.items()}",
        ("test_a_card_of_ours_is_one_text_in_the_form_of_the_protocol_and_of_its_sdks",),
    ),
    Mutant(
        "a2a:card-proto-001",
        "wire/dialects/a2a/card/writer.py",
        'VERSIONS: Final = ("1.0", "0.3")',
        'VERSIONS: Final = ("0.3", "1.0")',
    ),
    Mutant(
        "a2a:card-struct-001",
        "wire/dialects/a2a/card/writer.py",
        "list(skill.tags) or [skill.id]",
        "list(skill.tags)",
    ),
    Mutant(
        "a2a:card-cache-002",
        "gateway/cards/a2a.py",
        'if is_known(exchange.headers.get("if-none-match"), page.etag):',
        "if False:",
    ),
    Mutant(
        "a2a:card-sign-004",
        "runtime/peers/a2a/verification.py",
        "if key.active and (key.not_after is None or key.not_after > now)",
        "if key.kid",
        ("test_a_key_that_has_ended_verifies_nothing",),
    ),
    Mutant(
        "a2a:card:keys",
        "runtime/peers/a2a/verification.py",
        "if pins:",
        "if not self:",
        ("test_a_pinned_key_wins_and_nobody_is_asked",),
    ),
    Mutant(
        "a2a:card:verify",
        "wire/dialects/a2a/card/signature.py",
        "if ed25519.holds(key, read.covers(payload), read.signature):",
        "if key:",
        ("test_whatever_is_changed_breaks_the_signature",),
    ),
    Mutant(
        "a2a:card:extended",
        "gateway/cards/a2a.py",
        "if caller.may(one.needs)]",
        "if caller]",
    ),
)
