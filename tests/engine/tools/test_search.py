"""Tools that a model looks for: what fits a question, and in which order."""

from carnet.core.messages.parameters import Tool
from carnet.engine.tools.search import MOST_FOUND, NOTHING_FOUND, matching, words_of_found
from carnet.ports.engine.tools import LoopTool
from tests.engine.scene import nothing


def made(name: str, description: str = "") -> LoopTool:
    return LoopTool(definition=Tool(name, description), use=nothing)


MAIL = made("send_mail", "Sends a letter to somebody.")
READ = made("read_page", "Reads a page, or a letter.")
TOOLS = [READ, MAIL]


def names(query: object) -> list[str]:
    return [tool.definition.name for tool in matching(TOOLS, {"query": query})]


def test_words_of_names_count_more_than_words_of_descriptions() -> None:
    assert names("MAIL, letter") == ["send_mail", "read_page"]
    assert names("read") == ["read_page"]
    assert names("send-mail") == ["send_mail"]


def test_a_question_that_fits_nothing_or_is_none_finds_nothing() -> None:
    assert names("weather") == names("") == names(3) == names("mai") == []
    assert matching(TOOLS, {}) == []
    assert words_of_found([]) == NOTHING_FOUND


def test_of_many_only_some_are_found_in_their_order() -> None:
    many = [made(f"page_{n}") for n in range(3 * MOST_FOUND)]
    assert matching(many, {"query": "page"}) == many[:MOST_FOUND]


def test_a_model_is_told_names_and_descriptions() -> None:
    found = {"name": "send_mail", "description": "Sends a letter to somebody."}
    assert words_of_found([MAIL]) == {"tools": [found]}
