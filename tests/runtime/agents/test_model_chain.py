"""Several models, asked one after the other: for which failures, and for which never."""

import logging
from typing import Any

import pytest

from carnet import errors
from carnet.core.messages.events import Done, Message, Text, ToolCall, Usage
from carnet.errors import CarnetError
from carnet.ports.engine.model import ModelAsk
from carnet.runtime.agents.model_chain import ModelChain, NamedModel
from carnet.testing.model import ScriptedModel
from tests.engine.scene import Written, call

ASK = ModelAsk(messages=(Message.user("Hi"),), correlation="req_1")


class Chained:
    """Models behind one another, and what was passed on."""

    def __init__(self, *answers: list[Any]) -> None:
        self.models = [ScriptedModel(answer) for answer in answers]
        self.written = Written()
        named = [NamedModel(f"m{n}", model) for n, model in enumerate(self.models)]
        self.chain = ModelChain(named)

    @property
    def asked(self) -> list[int]:
        return [len(model.asked) for model in self.models]

    async def __call__(self) -> Done:
        return await self.chain(ASK, self.written)

    async def failed(self) -> CarnetError:
        with pytest.raises(CarnetError) as found:
            await self()
        return found.value


@pytest.mark.parametrize(
    "failure",
    [
        errors.ProviderUnavailable("no connection"),
        errors.ProviderTimeout("silent"),
        errors.ProviderError("garbage"),
        errors.ModelRateLimited("429"),
        errors.ModelQuotaExceeded("402"),
        errors.CircuitOpen(retry_after=3),
    ],
    ids=lambda failure: failure.code,
)
async def test_for_a_failure_of_the_provider_the_next_one_is_asked(
    failure: CarnetError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="carnet.runtime")
    chained = Chained([Usage(3, 0), failure], ["Hello"], ["never"])
    assert await chained() == Done("stop")
    assert chained.written.events == [Text("Hello")]
    assert chained.written.used == [Usage(3, 0)]
    assert chained.asked == [1, 1, 0]
    assert chained.models[1].asked == [ASK]
    (record,) = caplog.records
    assert record.getMessage() == "model failed, another one is asked"
    noted = vars(record)
    assert (noted["correlation_id"], noted["model"]) == ("req_1", "m0")
    assert noted["code"] == failure.code
    assert noted["detail"].startswith("m1 is asked instead")


@pytest.mark.parametrize(
    "refusal",
    [
        errors.ContextTooLong("8193 tokens"),
        errors.ModelRefused("temperature"),
        errors.ModelKeyRefused("401"),
        errors.ModelNotFound("404"),
        errors.EgressRefused("not there"),
    ],
    ids=lambda refusal: refusal.code,
)
async def test_what_refuses_the_question_is_final(refusal: CarnetError) -> None:
    chained = Chained([refusal], ["never"])
    assert await chained.failed() is refusal
    assert chained.asked == [1, 0]


@pytest.mark.parametrize("begun", ["Hel", call()], ids=["text", "tool call"])
async def test_what_has_begun_is_the_answer(begun: str | ToolCall) -> None:
    chained = Chained([begun, errors.ProviderUnavailable("cut")], ["never"])
    assert (await chained.failed()).code == "provider_unavailable"
    assert chained.asked == [1, 0]


async def test_when_all_have_failed_the_last_one_is_told() -> None:
    chained = Chained([errors.ProviderUnavailable("a")], [errors.ModelRateLimited("b")])
    assert (await chained.failed()).code == "model_rate_limited"
    assert chained.asked == [1, 1]
