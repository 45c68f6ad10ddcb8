"""The canonical input of a chat turn: what is taken of parameters, and that it is read again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import File, Link
from carnet.errors import InvalidRequest
from carnet.wire.dialects.agents_api.chat_input import (
    STRIPPED,
    ChatInput,
    RunTool,
    read_chat,
    read_history,
    read_input,
    read_params,
    read_tools,
    write_input,
)
from tests.wire.dialects.agents_api.test_parts import FILES, LINKS, VALUES, WORDS

INPUTS = st.builds(
    ChatInput,
    message=st.text(max_size=20),
    history=st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=10)), max_size=3
    ).map(tuple),
    tools=st.lists(
        st.builds(
            RunTool,
            id=WORDS,
            name=WORDS,
            arguments=st.dictionaries(WORDS, VALUES, max_size=2),
            result=VALUES,
        ),
        max_size=2,
    ).map(tuple),
    attachments=st.lists(FILES | LINKS, max_size=2).map(tuple),
    client_context=st.dictionaries(WORDS, VALUES, max_size=2),
    session_id=st.none() | WORDS,
    run_id=st.none() | WORDS,
)


@given(INPUTS)
def test_what_was_recorded_is_read_as_the_same(given: ChatInput) -> None:
    assert read_input(write_input(given)) == given


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def data(**value: Any) -> dict[str, Any]:
    return {"type": "data", "data": value}


def params(*parts: dict[str, Any], **more: Any) -> ChatInput:
    return read_params({"message": {"parts": list(parts)}, **more})


def test_everything_that_a_message_may_hold_is_taken() -> None:
    found = params(
        data(role="user", text="before"),
        data(role="agent", text="yes"),
        data(clientContext={"first": "a", "shared": "old"}),
        data(clientContext={"second": "b", "shared": "new", STRIPPED[0]: ["x"]}),
        data(toolCallId="c1", toolId="look", arguments={"q": 1}),
        data(toolCallId="c1", result={"hits": 3}),
        {"type": "file", "file": {"bytes": "aGk="}},
        {"type": "file", "file": {"uri": "https://a"}},
        text("now"),
        id="run-1",
        sessionId=7,
        metadata={"x": 1},
    )
    assert found == ChatInput(
        message="now",
        history=(("user", "before"), ("assistant", "yes")),
        tools=(RunTool(id="c1", name="look", arguments={"q": 1}, result={"hits": 3}),),
        attachments=(File("aGk="), Link("https://a")),
        client_context={  # W56
            "first": "a",
            "shared": "new",
            "second": "b",
            "source": "jsonrpc",
            "client_name": "jsonrpc-chat",
            "metadata": {"x": 1},
        },
        session_id="7",
        run_id="run-1",
    )


def test_messages_to_an_agent_say_what_was_said_and_run() -> None:
    found = params(
        data(role="agent", text="yes"),
        data(toolCallId="c1", toolId="look", arguments="no object"),
        data(toolCallId="c1", toolId="look", result=None),
        {"type": "file", "file": {"bytes": "aGk="}},
        text("now"),
    ).messages()
    assert [message.role for message in found] == ["assistant", "user", "assistant", "tool"]
    assert found[1].parts == ("now", File("aGk="))
    assert found[1].metadata == {
        "client_context": {"source": "jsonrpc", "client_name": "jsonrpc-chat"}
    }
    assert found[2].tool_calls[0].arguments == "{}"
    assert (found[3].text, found[3].name, found[3].tool_call_id) == ("null", "look", "c1")


def test_files_alone_are_a_message_and_nothing_is_none() -> None:
    alone = ChatInput(attachments=(File("aGk="),)).messages()
    assert (alone[0].parts, alone[0].metadata) == ((File("aGk="),), None)
    assert ChatInput().messages() == ()


@pytest.mark.parametrize("parts", [(), (text("  "),), (data(role="user", text="before"),)])
def test_a_message_that_says_nothing_is_refused(parts: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        params(*parts)
    assert refused.value.facts["field"] == "message"


def test_history_is_of_those_who_speak() -> None:  # W49
    given: list[dict[str, Any]] = [
        {"role": "system", "text": "no"},
        {"role": ["user"], "text": "no"},
        {"role": "user", "text": " "},
        {"role": "user", "text": 7},
        {"role": "agent", "text": "yes"},
        {"text": "no"},
    ]
    assert read_history(given) == [("assistant", "yes")]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([{"toolCallId": "c", "result": 1}], "tool_call_mismatch"),
        ([{"toolCallId": "c", "toolId": "t"}], "tool_call_mismatch"),
        ([{"toolCallId": "c", "toolId": "t"}] * 2, "duplicate_tool_call"),
        ([{"toolCallId": "c", "result": 1}] * 2, "duplicate_tool_result"),
        ([{"toolCallId": "c"}, {"toolCallId": "c", "result": 1}], "invalid_tool_call"),
        (
            [{"toolCallId": "c", "toolId": "t"}, {"toolCallId": "c", "toolId": "u", "result": 1}],
            "tool_name_mismatch",
        ),
    ],
)
def test_tools_that_do_not_fit_are_refused_by_their_word(  # W50
    given: list[dict[str, Any]], word: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_tools(given)
    assert refused.value.facts["word"] == f"agents_chat_jsonrpc_{word}"


def test_data_without_a_call_is_no_tool() -> None:
    assert read_tools([{"role": "user"}]) == ()


def test_a_chat_is_read_with_its_files_and_where_it_comes_from_is_ours_to_say() -> None:
    found = read_chat(
        {
            "message": " hi ",
            "attachments": [{"uri": "https://a"}],
            "client_context": {"source": "channel", "client_name": "bot", "tool_declarations": 1},
            "session_id": "s",
        }
    )
    assert found == ChatInput(
        message="hi",
        attachments=(Link("https://a"),),
        client_context={"source": "rest", "client_name": "bot"},
        session_id="s",
    )
    assert read_chat({"message": "hi", "client_context": {"client_name": 7}}).client_context == {
        "source": "rest",
        "client_name": "frontend-chat",
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "message"),
        ({"message": 7}, "message"),
        ({"message": " "}, "message"),
        ({"message": "hi", "attachments": {}}, "attachments"),
    ],
)
def test_a_chat_that_says_nothing_is_refused(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_chat(body)
    assert refused.value.facts["field"] == field
