"""Who pays is told what it paid for, and nobody else is (R26)."""

import json
from itertools import count

from carnet.core.people.identity import Account, Actor, Caller, Token
from carnet.core.people.person import Person
from carnet.gateway.people.ledger import Holdings
from carnet.ports.money.payments import HeldAccount
from tests.support.organisation import Organisation

ACME = "acme.example"
SECRET = "canary-of-what-was-asked"

_numbers = count()


def run_header(run: str) -> list[tuple[str, str]]:
    return [("x-tangle-runid", run)]


def test_a_payer_is_told_her_postings_and_the_lines_of_her_runs(acme: Organisation) -> None:
    token, other = acme.new_token("paying"), acme.new_token("somebody-else")
    for i in range(3):
        assert acme.chat(SECRET, "paid", token=token, headers=run_header(f"mine-{i}")).status == 200
        assert acme.chat("x", "paid", token=other, headers=run_header(f"theirs-{i}")).status == 200
    first = acme.get("/ledger?limit=2", token=token).json
    rest = acme.get(f"/ledger?limit=2&before={first['next']}", token=token).json
    entries = [*first["entries"], *rest["entries"]]
    assert [entry["run"] for entry in entries] == ["mine-2", "mine-1", "mine-0"]
    assert rest["next"] is None
    assert {(e["debit"], e["credit"], e["amount"]) for e in entries} == {
        ("paying@acme.example", "agent:paid", "0.0002")
    }
    lines = acme.get("/runs?payer=me", token=token).json
    assert [(line["run"], line["cost"], line["state"]) for line in lines["runs"]] == [
        (f"mine-{i}", "0.0002", "done") for i in (2, 1, 0)
    ]
    page = acme.get("/runs?payer=me&limit=1", token=token).json
    more = acme.get(f"/runs?payer=me&limit=9&before={page['next']}", token=token).json
    assert [line["run"] for line in (*page["runs"], *more["runs"])] == [
        *("mine-2", "mine-1", "mine-0"),
    ]
    assert acme.get("/ledger?run=theirs-1", token=token).json["entries"] == []
    assert len(acme.get("/ledger?run=mine-1", token=token).json["entries"]) == 1
    assert acme.get("/ledger?before=x", token=token).status == 400
    assert acme.get("/runs?payer=me&agent=paid", token=token).status == 400


def test_who_pays_for_the_call_of_another_is_told_of_it_and_not_what_it_said(
    acme: Organisation,
) -> None:
    payer = acme.new_token("payer-of-others")
    bridge = acme.new_token("bridging", "--may-forward-authorization")
    fields = [
        *run_header("forwarded-1"),
        ("x-tangle-forwarded-authorization", f"Bearer {payer}"),
    ]
    assert acme.chat(SECRET, "paid", token=bridge, headers=fields).status == 200
    (line,) = acme.get("/runs?payer=me", token=payer).json["runs"]
    assert (line["run"], line["agent"], line["payer"]) == (
        *("forwarded-1", "paid", "payer-of-others@acme.example"),
    )
    (entry,) = acme.get("/ledger", token=payer).json["entries"]
    assert entry["run"] == "forwarded-1"
    # The caller took part, and did not pay; the payer paid, and is not told what was said.
    assert acme.get("/runs?payer=me", token=bridge).json["runs"] == []
    assert acme.get("/ledger", token=bridge).json["entries"] == []
    replies = [
        acme.get(path, token=payer)
        for path in (
            *("/runs/forwarded-1?full=true", "/runs/forwarded-1/events", "/runs/forwarded-1"),
            *("/runs?payer=me", "/ledger"),
        )
    ]
    assert [reply.status for reply in replies] == [404, 404, 404, 200, 200]
    assert SECRET not in json.dumps([reply.body.decode() for reply in replies])


def test_a_person_is_told_what_all_her_tokens_paid(acme: Organisation) -> None:
    acme.carnet("people", "add", "payer")
    tokens = [acme.new_token(f"payer-{i}", "--person", "payer") for i in range(2)]
    for i, token in enumerate(tokens):
        run = run_header(f"hers-{i}")
        assert acme.chat("hi", "paid", token=token, headers=run).status == 200
    for token in tokens:
        entries = acme.get("/ledger", token=token).json["entries"]
        assert [entry["debit"] for entry in entries] == [
            *("payer-1@acme.example", "payer-0@acme.example"),
        ]


def test_who_may_read_no_runs_reads_no_ledger(acme: Organisation) -> None:
    token = acme.new_token("blind", "--scope", "call:paid", "--scope", "pay")
    assert acme.get("/ledger", token=token).status == 403
    assert acme.get("/runs?payer=me", token=token).status == 403


def test_the_command_line_tells_what_was_paid_by_whom(acme: Organisation) -> None:
    token = acme.new_token("typing")
    acme.chat("hi", "paid", token=token, headers=run_header("typed-1"))
    page = acme.json("ledger", "--mine", "--as", token)
    assert [entry["run"] for entry in page["entries"]] == ["typed-1"]
    assert page["sum"] == "0.0002"
    by_payer = {t["name"]: t for t in acme.json("ledger", "--by", "payer")["totals"]}
    assert by_payer["typing@acme.example"]["amount"] == "0.0002"
    by_agent = {t["name"]: t for t in acme.json("ledger", "--by", "agent")["totals"]}
    assert "agent:paid" in by_agent
    by_run = acme.json("ledger", "--by", "run", "--limit", "10000")["totals"]  # of other tests too
    assert "typed-1" in {total["name"] for total in by_run}
    assert acme.json("ledger", "--by", "peer")["totals"] == []
    assert "typing@acme.example" in acme.carnet("ledger", "--by", "payer").stdout


def a_token(name: str, created: int, **more: object) -> Token:
    n = next(_numbers)
    fields = {"n": n, "number": str(n), "hash": b"", "prefix": "", "scopes": frozenset()}
    return Token(name=name, created=created, **fields, **more)  # type: ignore[arg-type]  # as typed


class _People:
    """One person."""

    def __init__(self, person: Person) -> None:
        self._person = person

    def numbered(self, n: int) -> Person | None:
        return self._person if n == self._person.n else None


def held(shown: Token, *others: Token, account: str | None = None) -> list[HeldAccount]:
    people = _People(Person(n=7, name="alice", account=account, created=5))
    holdings = Holdings(lambda: [shown, *others], people, domain=ACME)  # type: ignore[arg-type]  # asked of numbers alone
    caller = Caller(actor=Actor(name="x"), scopes=frozenset(), token=shown.number)
    return holdings.of(caller, 100)


def test_an_account_is_held_since_its_first_token_of_the_same_holder() -> None:
    mine = a_token("laptop", 50)
    before = a_token("laptop", 20, revoked=30)
    assert held(mine, before, a_token("other", 1)) == [HeldAccount(Account(ACME, "laptop"), 20)]
    hers = a_token("laptop", 10, revoked=15, person=7)
    assert held(mine, hers) == [HeldAccount(Account(ACME, "laptop"), 50)]


def test_a_person_holds_the_accounts_of_her_live_tokens_and_her_own() -> None:
    tokens = (
        a_token("a", 30, person=7),
        a_token("b", 20, person=7, revoked=25),
        a_token("a", 10, person=7, revoked=11),
        a_token("c", 40, person=7, payer="sales"),
        a_token("d", 1),
        a_token("e", 1, person=8),
    )
    assert held(*tokens, account="sales") == [
        HeldAccount(Account(ACME, "a"), 10),
        HeldAccount(Account(ACME, "sales"), 40),
    ]
    assert held(tokens[0], account="sales") == [
        HeldAccount(Account(ACME, "a"), 30),
        HeldAccount(Account(ACME, "sales"), 5),
    ]


def test_a_token_of_a_peer_holds_the_account_of_the_peer() -> None:
    theirs = a_token("gateway", 3, peer="globex.example")
    peer = Account("globex.example", "globex.example")
    assert held(theirs, a_token("globex.example", 1)) == [HeldAccount(peer, 3)]


def test_a_token_that_is_not_known_any_more_holds_nothing() -> None:
    caller = Caller(actor=Actor(name="x"), scopes=frozenset(), token="77")
    people = _People(Person(n=7, name="alice"))
    holdings = Holdings(list, people, domain=ACME)  # type: ignore[arg-type]  # asked of nobody
    assert holdings.of(caller, 1) == []
