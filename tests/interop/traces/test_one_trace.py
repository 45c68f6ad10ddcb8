"""One trace across three organisations, as a collector receives it from all of them."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from carnet.cli.demo.processes import Demo, House
from carnet.testing.stage import environment
from carnet.testing.wait import until
from tests.support.commands import commands
from tests.support.http import Reply, request
from tests.support.traces.collector import Collector, Received

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"  # the span that the caller is in
CANARY = "a-word-that-nobody-else-says"
SECRET = "sk-collector-secret"
SERVER, CLIENT = 2, 3


class Scene(NamedTuple):
    """The organisations of the demo, which tell one collector of their turns."""

    acme: House
    globex: House
    initech: House
    collector: Collector

    def ask(self, agent: str, text: str, *fields: tuple[str, str]) -> Reply:
        body = {"model": agent, "messages": [{"role": "user", "content": text}]}
        own = [
            ("authorization", f"Bearer {self.acme.token}"),
            ("content-type", "application/json"),
            *fields,
        ]
        where = f"{self.acme.url}/v1/chat/completions"
        return request("POST", where, own, json.dumps(body).encode())

    def span(self, name: str, domain: str, kind: int) -> Received:
        """The one of that name and kind that an organisation has sent, once it has."""

        def found() -> list[Received]:
            return [each for each in self.all_of(name, domain) if each.span.kind == kind]

        (one,) = until(found)
        return one

    def all_of(self, name: str, domain: str) -> list[Received]:
        sent = self.collector.named(f"invoke_agent {name}")
        return [each for each in sent if each.resource["carnet.domain"] == domain]

    def metrics(self, house: House) -> str:
        words = ("tokens", "create", "m", "--scope", "metrics", "--format", "json")
        made = commands().run(words, at=house.folder, env=environment(), seconds=60)
        token = json.loads(made.stdout)["token"]
        fields = [("authorization", f"Bearer {token}")]
        reply = until(
            lambda: request("GET", f"{house.url}/metrics", fields), lambda each: each.status == 200
        )
        return reply.body.decode()


class Traced(Demo):
    """The demo, with a collector."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url

    def write(self, house: House) -> None:
        super().write(house)
        (house.folder / "var" / "collector.key").write_text(SECRET)
        config = house.folder / "carnet.toml"
        section = f'\n[telemetry]\notlp = "{self._url}"\n'
        section += 'authorization = {file = "var/collector.key"}\n'
        config.write_text(config.read_text() + section)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    collector = Collector()
    folder = tmp_path_factory.mktemp("d") / "d"
    with pytest.MonkeyPatch.context() as patch, Traced(folder, collector.url) as demo:
        patch.setitem(sys.modules, "xllamacpp", None)  # what a model says is not looked at
        asyncio.run(demo.launch())
        demo.wait()
        acme, globex, initech = demo.houses
        yield Scene(acme, globex, initech, collector)
    collector.close()


def test_spans_of_three_organisations_are_one_trace_each_below_the_one_that_called(
    scene: Scene,
) -> None:
    traced = ("traceparent", f"00-{TRACE}-{CALLER}-01")
    assert scene.ask("@writer@globex.example", CANARY, traced).status == 200
    chain = [
        scene.span("@writer@globex.example", "acme.example", SERVER),
        scene.span("@writer@globex.example", "acme.example", CLIENT),
        scene.span("writer", "globex.example", SERVER),
        scene.span("@facts@initech.example", "globex.example", CLIENT),
        scene.span("facts", "initech.example", SERVER),
    ]
    assert {each.span.trace_id.hex() for each in chain} == {TRACE}
    above = [CALLER, *[each.span.span_id.hex() for each in chain[:-1]]]
    assert [each.span.parent_span_id.hex() for each in chain] == above
    for each in chain:
        assert each.span.start_time_unix_nano <= each.span.end_time_unix_nano
    runs = {each.attributes["gen_ai.conversation.id"] for each in chain}
    assert runs == {chain[0].attributes["carnet.run"]}
    first = chain[0].attributes
    assert (first["gen_ai.operation.name"], first["gen_ai.provider.name"]) == (
        "invoke_agent",
        "carnet",
    )
    assert (first["server.address"], first["carnet.cost"]) == ("globex.example", "0.003")
    assert [each.attributes["carnet.depth"] for each in chain] == [0, 1, 1, 2, 2]


def test_neither_what_is_asked_nor_a_secret_leaves(scene: Scene) -> None:
    scene.ask("@writer@globex.example", CANARY)
    until(lambda: len(scene.all_of("writer", "globex.example")) > 1)
    sent = b"".join(scene.collector.bodies)
    for secret in (CANARY, SECRET, "days of sun", scene.acme.token):
        assert secret.encode() not in sent
    assert set(scene.collector.authorizations) == {SECRET}


def test_a_call_that_fails_says_so_in_its_span(scene: Scene) -> None:
    assert scene.ask("@nobody@globex.example", "hi").status == 404
    found = scene.span("@nobody@globex.example", "acme.example", SERVER)
    assert found.span.status.code == 2
    assert found.attributes["error.type"] == found.span.status.message


def test_metrics_count_cost_and_calls_by_agent_and_by_peer(scene: Scene) -> None:
    assert scene.ask("@writer@globex.example", "hi").status == 200
    ours = scene.metrics(scene.acme)
    assert 'carnet_peer_calls_total{peer="globex.example",state="done"}' in ours
    theirs = scene.metrics(scene.globex)

    def number(text: str, name: str) -> float:
        (line,) = [each for each in text.splitlines() if each.startswith(name)]
        return float(line.rsplit(" ", 1)[1])

    charged = number(ours, 'carnet_peer_cost_total{peer="globex.example"}')
    assert charged > 0
    assert charged == pytest.approx(number(theirs, 'carnet_cost_total{agent="writer"}'))
    assert number(theirs, 'carnet_peer_calls_total{peer="initech.example",state="done"}') > 0
    assert number(ours, 'carnet_spans_total{state="dropped"}') == 0
