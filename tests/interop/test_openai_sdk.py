"""The real `openai` package against a gateway, and a gateway as a provider of another."""

from collections.abc import Iterator

import openai
import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.organisation import Organisation

PROVIDED = """
[agents.model]
kind = "openai"
url = "{url}/v1"
model = "words"
api_key = {{file = "var/model.key"}}
system = "Answer briefly."
price = "0.0001"
"""


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway whose agent `model` is served by another gateway, as by any provider."""
    folder = tmp_path_factory.mktemp("sdk")
    provider = organisation(folder / "provider", "provider.example")
    front = organisation(folder / "front", "front.example")
    front.configure(PROVIDED.format(url=provider.url))
    (front.folder / "var" / "model.key").write_text(provider.token)
    provider.start()
    front.start()
    yield front
    assert (front.stop(), provider.stop()) == (0, 0)


@pytest.fixture
def client(front: Organisation) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{front.url}/v1", api_key=front.token) as found:
        yield found


def test_the_client_gets_a_completion(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="echo", messages=[{"role": "user", "content": "hello"}]
    )
    assert answer.choices[0].message.content == "hello"
    assert answer.usage is not None
    assert answer.usage.model_extra is not None
    assert answer.usage.model_extra["currency"] == "credits"


def test_the_client_gets_a_stream_with_usage(client: openai.OpenAI) -> None:
    text, usage = "", None
    with client.chat.completions.create(
        model="words",
        messages=[{"role": "user", "content": "a b c"}],
        stream=True,
        stream_options={"include_usage": True},
    ) as chunks:
        for chunk in chunks:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
    assert text == "a b c "
    assert usage is not None


def test_the_client_gets_usage_from_a_stream_that_did_not_ask_for_it(
    client: openai.OpenAI,
) -> None:
    with client.chat.completions.create(
        model="words", messages=[{"role": "user", "content": "a b c"}], stream=True
    ) as stream:
        chunks = list(stream)
    assert all(len(chunk.choices) == 1 for chunk in chunks)
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def test_the_client_lists_the_agents(client: openai.OpenAI) -> None:
    assert "echo" in [model.id for model in client.models.list()]


def test_the_client_gets_one_agent_by_its_name(client: openai.OpenAI) -> None:
    assert client.models.retrieve("echo").id == "echo"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("nobody")
    assert refused.value.code == "agent_not_found"


def test_the_client_repeats_a_request_by_its_key(client: openai.OpenAI) -> None:
    def ask(text: str) -> str:
        answer = client.chat.completions.create(
            model="paid",
            messages=[{"role": "user", "content": text}],
            extra_headers={"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"},
        )
        return answer.id

    assert ask("hello") == ask("hello")
    with pytest.raises(openai.UnprocessableEntityError):
        ask("something else")


def test_the_client_knows_what_its_requests_are_called(
    front: Organisation, client: openai.OpenAI
) -> None:
    asked = {"role": "user", "content": "hello"}
    answer = client.chat.completions.create(model="echo", messages=[asked])  # type: ignore[list-item]  # a plain dict
    assert answer._request_id is not None  # noqa: SLF001  its public name
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="nobody", messages=[asked])  # type: ignore[list-item]  # a plain dict
    assert refused.value.request_id not in {None, answer._request_id}  # noqa: SLF001  as above
    until(
        lambda: front.json("runs", "--correlation", str(answer._request_id))["runs"],  # noqa: SLF001
        lambda runs: len(runs) == 1,
    )


def test_the_client_does_not_repeat_what_is_refused_for_good(client: openai.OpenAI) -> None:
    with pytest.raises(openai.RateLimitError) as refused:
        client.chat.completions.create(
            model="echo",
            messages=[{"role": "user", "content": "hello"}],
            extra_headers={"x-tangle-forwarded-depth": "4"},
        )
    assert refused.value.code == "bridge_depth_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(
            model="nobody", messages=[{"role": "user", "content": "hello"}]
        )
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="ck_wrong").models.list()


def test_a_provider_is_asked_like_a_model_and_priced_here(
    front: Organisation, client: openai.OpenAI
) -> None:
    run = "conv_provided"
    raw = client.chat.completions.with_raw_response.create(
        model="model",
        messages=[{"role": "user", "content": "one two"}],
        extra_headers={"x-tangle-runid": run, "x-tangle-forwarded-depth": "3"},
    )
    assert raw.headers["x-tangle-runid"] == run
    assert raw.parse().choices[0].message.content == "one two "
    (entry,) = front.json("ledger", "--run", run)["entries"]
    assert (entry["credit"], entry["amount"]) == ("agent:model", "0.0001")


def test_a_stream_passes_through_a_provider(client: openai.OpenAI) -> None:
    with client.chat.completions.create(
        model="model", messages=[{"role": "user", "content": "x y"}], stream=True
    ) as chunks:
        parts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert [part for part in parts if part] == ["x ", "y "]
