"""Every operation of A2A at the real server of the a2a-sdk, in both bindings and both versions."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, PeerRefused, TaskNotFound, UsageInvalid
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.a2a.cards import A2aCards, card_site
from carnet.runtime.peers.a2a.client import A2aClient, A2aEndpoint, Reached
from carnet.runtime.system import SystemClock
from carnet.testing.address import Address
from carnet.wire.dialects.a2a import client as a2a
from tests.interop.a2a_client.scene import serving
from tests.interop.a2a_client.sdk_server import SERVED

NEW = [name for name, (_, version, _) in SERVED.items() if version == "1.0"]
SECRET = Secret("sesame")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def server(notes: Path) -> Iterator[Address]:
    with serving(notes) as address:
        yield address


@pytest.fixture
async def cards() -> AsyncIterator[tuple[EgressClient, A2aCards]]:
    http = EgressClient()
    cards = A2aCards(http, SystemClock())
    yield http, cards
    await cards.close()
    await http.close()


Line = tuple[A2aClient, Reached]


@pytest.fixture
async def line(
    request: pytest.FixtureRequest, server: Address, cards: tuple[EgressClient, A2aCards]
) -> Line:
    endpoint = A2aEndpoint(
        site=card_site(f"{server.url}/{request.param}"), token=SECRET, api_key=SECRET
    )
    client = A2aClient(cards[0], endpoint, cards=cards[1])
    return client, await client.reach()


async def sent(line: Line, text: str, *, wait: bool = True) -> a2a.Update:
    client, reached = line
    message = a2a.write_message((text,), message_id=f"m-{text}-{reached.card.name}")
    result = await client.ask(reached, "SendMessage", a2a.sending(message, wait=wait))
    return a2a.read_update(result)


async def task_of(line: Line, text: str, *, wait: bool = True) -> a2a.RemoteTask:
    task = await sent(line, text, wait=wait)
    assert isinstance(task, a2a.RemoteTask)
    return task


async def streamed(line: Line, operation: str, given: dict[str, Any]) -> list[a2a.Update]:
    client, reached = line
    reader = a2a.UpdateReader(reached.interface)
    updates: list[a2a.Update] = []
    async with client.send(client.outbound(reached, operation, given)) as answer:
        async for chunk in answer.chunks():
            updates += reader.feed(chunk)
    return [*updates, *reader.close()]


@pytest.mark.parametrize("line", sorted(SERVED), indirect=True)
async def test_a_message_is_sent_and_its_task_is_asked_for(line: Line) -> None:
    task = await task_of(line, "make it")
    assert (task.status.state, task.artifacts[0].parts) == ("completed", ("make it",))
    client, reached = line
    again = a2a.read_task(await client.ask(reached, "GetTask", {"id": task.id}))
    assert (again.id, again.context, again.artifacts) == (task.id, task.context, task.artifacts)
    with pytest.raises(TaskNotFound):
        await client.ask(reached, "GetTask", {"id": "nobody"})


@pytest.mark.parametrize("line", sorted(name for name in SERVED if SERVED[name][2]), indirect=True)
async def test_a_message_is_streamed_and_its_task_subscribed_to(line: Line, notes: Path) -> None:
    message = a2a.write_message(("chunks a b",), message_id="m-chunks")
    first, *updates = await streamed(line, "SendStreamingMessage", a2a.sending(message, wait=False))
    assert isinstance(first, a2a.RemoteTask)
    kinds = [type(update) for update in updates]
    assert a2a.ArtifactUpdate in kinds
    assert isinstance(updates[-1], a2a.StatusUpdate)
    assert updates[-1].status.state == "completed"
    word = f"subscribe-{line[1].card.name}"
    task = await task_of(line, f"wait {word}", wait=False)
    (notes / f"go-{word}").write_text("")
    seen = await streamed(line, "SubscribeToTask", {"id": task.id})
    assert isinstance(seen[0], a2a.RemoteTask)
    assert seen[0].id == task.id


@pytest.mark.parametrize("line", sorted(SERVED), indirect=True)
async def test_a_task_is_cancelled_once(line: Line) -> None:
    client, reached = line
    task = await task_of(line, f"wait never-{reached.card.name}", wait=False)
    ended = a2a.read_task(await client.ask(reached, "CancelTask", {"id": task.id}))
    assert ended.status.state == "canceled"
    with pytest.raises(CarnetError) as refused:
        await client.ask(reached, "CancelTask", {"id": task.id})
    assert isinstance(refused.value, PeerRefused | TaskNotFound)


@pytest.mark.parametrize("line", NEW, indirect=True)
async def test_tasks_are_listed_page_by_page(line: Line) -> None:
    client, reached = line
    made = [(await task_of(line, f"make {number}")).id for number in range(3)]
    found: list[str] = []
    token = ""
    while True:
        given = {"pageSize": 2, "includeArtifacts": True, **({"pageToken": token} if token else {})}
        page = a2a.read_tasks(await client.ask(reached, "ListTasks", given))
        found += [task.id for task in page.tasks]
        token = page.following
        if not token:
            break
    assert set(made) <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("line", sorted(SERVED), indirect=True)
async def test_push_configurations_are_made_shown_listed_and_deleted(line: Line) -> None:
    client, reached = line
    task = await task_of(line, f"ask push {reached.card.name}")
    given = {"taskId": task.id, "id": "p1", "url": "https://8.8.8.8/hook", "token": "t"}
    made = a2a.read_config(await client.ask(reached, "CreateTaskPushNotificationConfig", given))
    assert (made.task, made.url) == (task.id, "https://8.8.8.8/hook")
    named = {"taskId": task.id, "id": made.id}
    shown = a2a.read_config(await client.ask(reached, "GetTaskPushNotificationConfig", named))
    assert shown == made
    if reached.card.name == "old-rest":
        with pytest.raises(UsageInvalid):
            await client.ask(reached, "ListTaskPushNotificationConfigs", {"taskId": task.id})
        return
    listed = await client.ask(reached, "ListTaskPushNotificationConfigs", {"taskId": task.id})
    assert a2a.read_configs(listed) == (made,)
    await client.ask(reached, "DeleteTaskPushNotificationConfig", named)
    empty = await client.ask(reached, "ListTaskPushNotificationConfigs", {"taskId": task.id})
    assert a2a.read_configs(empty) == ()


@pytest.mark.parametrize("line", sorted(SERVED), indirect=True)
async def test_the_extended_card_is_read(line: Line) -> None:
    client, reached = line
    page = await client.ask(reached, "GetExtendedAgentCard", {})
    assert isinstance(page, dict)
    assert page["name"] == reached.card.name


@pytest.mark.parametrize("line", ["old-rpc"], indirect=True)
async def test_what_the_former_version_cannot_do_is_told(line: Line) -> None:
    client, reached = line
    with pytest.raises(UsageInvalid, match=r"A2A 0\.3"):
        await client.ask(reached, "ListTasks", {})


async def test_a_card_is_asked_for_again_by_its_tag(
    server: Address, notes: Path, cards: tuple[EgressClient, A2aCards]
) -> None:
    site = card_site(f"{server.url}/rest")
    first = await cards[1].card(site)
    cards[1].forget(site)
    assert await cards[1].card(site) is first  # not sent again: 304
    until_logged = (notes / "sdk.log").read_text()
    assert 'agent-card.json HTTP/1.1" 304' in until_logged
