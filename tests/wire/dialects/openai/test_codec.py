"""Chat completions toward others: where they go, and how a model is told from a gateway."""

from carnet.wire.dialects.openai import CODEC, MODEL

BODY = b'{"error":{"code":"rate_limited","message":"slower"}}'


def test_an_agent_is_asked_below_its_name_and_the_default_one_at_the_root() -> None:
    assert CODEC.path("critic") == "/agents/critic/v1/chat/completions"
    assert CODEC.path("") == "/v1/chat/completions"


def test_the_refusal_of_a_model_is_read_as_a_models_and_that_of_a_gateway_as_a_gateways() -> None:
    codes = [
        codec.refusal(429, BODY, currency="credits", retry_after=None, date=None).error.code
        for codec in (CODEC, MODEL)
    ]
    assert codes == ["peer_busy", "model_rate_limited"]
