"""Every dialect in, every dialect out: what gets through, and what is said to be lost and is."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.interop.matrix.callers import CALLERS, Answered, Caller
from tests.interop.matrix.carried import ASKED_IN, CALLED_IN, FEATURES, carries
from tests.interop.matrix.scene import CALLED, PRICE, Pair, named
from tests.support.organisation import shared_with_others


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with shared_with_others():
        made = Pair(tmp_path_factory.mktemp("matrix"))
    yield made
    made.close()


def text(caller: Caller, pair: Pair, to: str) -> bool:
    return caller.say(pair, named("says", to), "hello").text == "hello"


def stream(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.stream(pair, named("pieces", to), "one two three")
    assert answered.text == "one two three "
    return answered.pieces > 1


def earlier(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.recall(pair, named("recalls", to))
    if answered is None:
        return False
    assert answered.text.endswith("second")
    return answered.text == "first | between | second"


def data_in(caller: Caller, pair: Pair, to: str) -> bool:
    return caller.say(pair, named("parts", to), "x", "data").text == "DataPart"


def file_in(caller: Caller, pair: Pair, to: str) -> bool:
    return caller.say(pair, named("parts", to), "x", "file").text == "File"


def data_out(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.say(pair, named("gives", to), "data")
    assert answered.text == "see: "
    return answered.data == [{"rows": [1, 2]}]


def file_out(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.say(pair, named("gives", to), "file")
    assert answered.text == "see: "
    return answered.files == ["hello.txt"]


def tools(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.say(pair, named("uses", to), "x")
    assert answered.text == "looked up"
    return answered.tools == ["look_up"]


def question(caller: Caller, pair: Pair, to: str) -> bool:
    return asked(caller.say(pair, named("asks", to), "x"), ("approval", "May I?"), "granted")


def payment(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.say(pair, named("sells", to), "x")
    return asked(answered, ("payment", "The archive costs two cents."), "sold")


def asked(answered: Answered, words: tuple[str, str], then: str) -> bool:
    """Whether it was asked and answered; what is not asked must have failed."""
    if answered.asked is None:
        assert answered.code
        return False
    assert answered.asked == words
    assert answered.answer is not None
    assert answered.answer().text == then
    return True


def failure(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.say(pair, named("breaks", to), "x")
    assert b"secret detail" not in answered.raw
    return answered.code is not None


def cost(caller: Caller, pair: Pair, to: str) -> bool:
    return caller.say(pair, named("says", to), "hello").cost == PRICE


def chain(caller: Caller, pair: Pair, to: str) -> bool:
    run = caller.say(pair, named("says", to), "hello").run
    assert run
    shown = pair.behind.get(f"/runs/{run}", token=pair.looking)
    return shown.status == 200 and shown.json["turns"][0]["depth"] == caller.depth + 1


def task(caller: Caller, pair: Pair, to: str) -> bool:
    answered = caller.task(pair, named("says", to), "hello")
    return answered is not None and answered.text == "hello"


LOOKS: Final[dict[str, Callable[[Caller, Pair, str], bool]]] = {
    look.__name__: look
    for look in (
        *(text, stream, earlier, data_in, file_in, data_out, file_out),
        *(tools, question, payment, failure, cost, chain, task),
    )
}


def test_every_dialect_stands_in_the_table() -> None:
    assert ASKED_IN.keys() == CALLERS.keys()
    assert CALLED_IN.keys() == CALLED.keys()
    assert FEATURES.keys() == LOOKS.keys()


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("called_in", CALLED_IN)
@pytest.mark.parametrize("asked_in", ASKED_IN)
def test_a_pair_of_dialects_carries_what_the_table_says(
    pair: Pair, asked_in: str, called_in: str, feature: str
) -> None:
    found = LOOKS[feature](CALLERS[asked_in], pair, called_in)
    assert found is (feature in carries(asked_in, called_in))
