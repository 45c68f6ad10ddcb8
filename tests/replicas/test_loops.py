"""A loop elsewhere that calls other agents, and gateways that share a database."""

import json

from tests.replicas.scene import Callers, House, Replica
from tests.replicas.upstream import Upstream
from tests.support.http import chat_body, request


async def test_a_call_out_of_a_turn_is_made_at_the_gateway_that_asked_and_at_no_other(
    house: House, four: list[Replica], people: Callers, model: Upstream
) -> None:
    """Another one says so, by a code of its own: the bearer is good, and its turn is not here."""

    def calls(bearer: str, text: str) -> str:
        fields = [("authorization", bearer), ("content-type", "application/json")]
        met = []
        for replica in (four[1], four[0]):
            url = f"{replica.url}/v1/chat/completions"
            reply = request("POST", url, fields, chat_body(text, "echo"))
            met.append(f"{reply.status} {reply.json.get('code', 'well')}")
        return ", ".join(met)

    model.loop = calls
    answer = await people.ask(four[0], "conv_loop", "looped", "hi")
    assert answer.status == 200
    said = json.loads(answer.body)["choices"][0]["message"]["content"]
    assert said == "421 turn_elsewhere, 200 well"
    assert house.turns("conv_loop") == [("done", None, 1), ("done", None, 1)]
    assert house.ran("conv_loop") == 1
