"""Statements between partners, as they are signed and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.money.statement import Statement, StatementLine
from carnet.errors import StatementInvalid
from carnet.wire.crypto import jws
from carnet.wire.travel.statement import MOST_LINES, TYPE, read_statement, write_statement

ids = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1)
lines = st.lists(
    st.builds(
        StatementLine,
        ids.map(lambda text: text[:64]),
        ids.map(lambda text: text[:64]),
        st.none() | st.integers(0, 10**15),
        st.none() | ids.map(lambda text: text[:64]),
        st.integers(0, 2**50),
    ),
    max_size=5,
)
SIGNATURE = bytes(64)


def made(**more: object) -> Statement:
    given = {"issuer": "acme.example", "audience": "globex.example", "currency": "credits"}
    return Statement(**(given | {"since": 0, "until": 9} | more))  # type: ignore[arg-type]  # as given


def written(statement: Statement) -> str:
    return write_statement(statement, issued=7, kid="k1", sign=lambda _: SIGNATURE)


@given(lines, lines)
def test_what_is_written_is_read_as_it_was(
    served: list[StatementLine], called: list[StatementLine]
) -> None:
    statement = made(served=tuple(served), made=tuple(called))
    found = read_statement(written(statement))
    assert found.statement == statement
    assert (found.issued, found.keyid, found.signature) == (7, "k1", SIGNATURE)
    assert found.signed == written(statement).rpartition(".")[0].encode()


def test_no_more_lines_are_written_than_are_read() -> None:
    line = StatementLine("r", "t", 1, None, 1)
    found = read_statement(written(made(served=(line,) * (MOST_LINES + 1))))
    assert len(found.statement.served) == MOST_LINES


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"iss": "no domain", "aud": "b.example", "iat": 1, "since": 1, "until": 2},
        {
            "iss": "a.example",
            "aud": "b.example",
            "iat": 1,
            "since": 1,
            "until": 2,
            "currency": "c",
            "served": [["r", "t", "1.2345678", None, 1]],
            "made": [],
        },
        {
            "iss": "a.example",
            "aud": "b.example",
            "iat": 1,
            "since": -1,
            "until": 2,
            "currency": "c",
            "served": [],
            "made": [],
        },
    ],
)
def test_what_is_no_statement_is_refused(claims: dict[str, object]) -> None:
    text = jws.write(claims, kid="k1", typ=TYPE, sign=lambda _: SIGNATURE)
    with pytest.raises(StatementInvalid):
        read_statement(text)


@pytest.mark.parametrize("text", ["", "a.b.c", "x"])
def test_a_text_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(StatementInvalid):
        read_statement(text)
