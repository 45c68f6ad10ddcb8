"""What of a request passes to a model, and what is told of the rest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.call import Ask
from carnet.core.messages.events import Message
from carnet.wire.dialects.openai.members import MOST_NAMES, Passing
from carnet.wire.dialects.openai.request import read_ask

NAMES = st.sampled_from(["temperature", "api_base", "models", "seed", "tools", "user", "é"])


def ask_with(members: dict[str, Any], *roles: str) -> Ask:
    messages = [{"role": role, "content": "x"} for role in (*roles, "user")]
    return read_ask({"messages": messages, **members})[1]


@given(st.dictionaries(NAMES, st.integers()), st.frozensets(NAMES))
def test_what_is_kept_and_what_is_removed_are_the_whole_request(
    members: dict[str, Any], passing: frozenset[str]
) -> None:
    found, ask = Passing(passing), ask_with(members)
    kept = found.kept(ask).body or {}
    assert kept.keys() == {"messages"} | (members.keys() & passing)
    names = {name if name.isascii() else "other" for name in members.keys() - passing}
    assert set(found.removed(ask)) == names


def test_everything_passes_where_nothing_is_said() -> None:
    ask = ask_with({"api_base": 1, "tools": [{"type": "mcp"}]}, "system", "developer")
    assert Passing().removed(ask) == ()
    assert Passing().kept(ask) == ask
    assert Passing.of(["*"], system=True) == Passing()


def test_messages_of_a_call_that_has_no_body_are_removed_as_well() -> None:
    ask = Ask(messages=(Message("developer", ("x",)), Message("user", ("hi",))))
    passing = Passing(frozenset(), system=False)
    assert passing.removed(ask) == ("system",)
    assert passing.kept(ask) == Ask(messages=(Message("user", ("hi",)),))


def test_no_more_names_are_told_than_a_header_should_have() -> None:
    ask = ask_with({f"member_{number}": 1 for number in range(1000)})
    assert len(Passing(frozenset()).removed(ask)) == MOST_NAMES


FUNCTION = {"type": "function", "function": {"name": "find"}}
SEARCH = {"type": "web_search"}


def test_tools_that_the_provider_would_run_stay_behind() -> None:
    passing = Passing(frozenset({"tools"}))
    for tools, kept in (
        ([FUNCTION, SEARCH, "mcp"], [FUNCTION]),
        ([SEARCH], None),  # a list without any is refused by most
    ):
        ask = ask_with({"tools": tools})
        assert (passing.kept(ask).body or {}).get("tools") == kept
        assert passing.removed(ask) == ("tools",)
        assert ask.body is not None
        assert ask.body["tools"] == tools  # the request itself is not changed
    own = ask_with({"tools": [FUNCTION, {"type": "custom", "custom": {"name": "x"}}]})
    assert passing.kept(own) == own
    assert passing.removed(own) == ()


def test_a_callers_instructions_stay_behind_in_the_body_too() -> None:
    ask = ask_with({"seed": 1}, "system", "developer")
    passing = Passing.of(["*"], system=False)
    assert passing.kept(ask) == ask_with({"seed": 1})
    assert passing.removed(ask) == ("system",)
    assert len(ask.messages) == 3
