"""Every operation of A2A, asked by the SDK, in both bindings."""

import asyncio
import json
from typing import Any

import pytest
from a2a.client import Client
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from carnet.testing.stage import Organisation
from carnet.testing.wait import until
from tests.interop.a2a.conftest import calling
from tests.support.a2a.wire import BINDINGS, new_name
from tests.support.webhooks.receivers import Receivers

pytestmark = pytest.mark.parametrize("binding", BINDINGS)


def message(text: str = "hello", *, parts: list[Part] | None = None, **more: Any) -> Message:
    return Message(
        message_id=new_name("m"),
        role=Role.ROLE_USER,
        parts=parts or [Part(text=text)],
        **more,
    )


async def sent(client: Client, content: Message, **wishes: Any) -> list[StreamResponse]:
    request = SendMessageRequest(
        message=content, configuration=SendMessageConfiguration(**wishes) if wishes else None
    )
    return [each async for each in client.send_message(request)]


async def task_of(client: Client, content: Message, **wishes: Any) -> Task:
    (only,) = await sent(client, content, **wishes)
    return only.task


def text_of(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


async def test_a_message_is_answered_by_a_completed_task(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "echo", binding) as client:
        first_message = message("hello")
        task = await task_of(client, first_message)
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert text_of(task) == "hello"
        assert [each.message_id for each in task.history] == [first_message.message_id]
        again = await client.get_task(GetTaskRequest(id=task.id))
        assert (again.id, again.context_id, text_of(again)) == (task.id, task.context_id, "hello")
        assert again.status.timestamp.seconds > 0


async def test_the_same_message_is_the_same_task(gateway: Organisation, binding: str) -> None:
    async with calling(gateway, "echo", binding) as client:
        first_message = message()
        first, second = await task_of(client, first_message), await task_of(client, first_message)
        assert first == second
        other = await task_of(client, message())
        assert other.id != first.id


async def test_history_is_as_long_as_it_is_wanted(gateway: Organisation, binding: str) -> None:
    async with calling(gateway, "echo", binding) as client:
        task = await task_of(client, message(), history_length=0)
        assert not task.history
        found = await client.get_task(GetTaskRequest(id=task.id, history_length=0))
        assert not found.history
        assert len((await client.get_task(GetTaskRequest(id=task.id))).history) == 1


async def test_parts_of_every_kind_reach_the_agent_and_come_back(
    gateway: Organisation, binding: str
) -> None:
    parts = [
        Part(text="one"),
        Part(raw=b"two", filename="two.bin", media_type="application/octet-stream"),
        Part(url="https://example.com/three", media_type="text/html"),
    ]
    async with calling(gateway, "parts", binding) as client:
        assert text_of(await task_of(client, message(parts=parts))) == "str File Link"
    async with calling(gateway, "files", binding) as client:
        (artifact,) = (await task_of(client, message())).artifacts
        text, raw, link, data = artifact.parts
        assert text.text == "see: "
        assert (raw.raw, raw.filename, raw.media_type) == (b"hello", "hello.txt", "text/plain")
        assert (link.url, link.filename) == ("https://example.com/a.pdf", "a.pdf")
        assert list(data.data.struct_value["rows"]) == [1, 2]


async def test_a_stream_begins_with_its_task_and_ends_with_its_state(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "echo", binding, streaming=True) as client:
        frames = await sent(client, message("one two"))
    assert frames[0].HasField("task")
    updates = [each.artifact_update for each in frames if each.HasField("artifact_update")]
    assert "".join(part.text for each in updates for part in each.artifact.parts) == "one two"
    assert frames[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert {each.task_id for each in updates} == {frames[0].task.id}


async def test_who_does_not_wait_is_given_the_task_at_once(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "echo", binding) as client:
        task = await task_of(client, message("later"), return_immediately=True)
        assert task.status.state in {
            TaskState.TASK_STATE_SUBMITTED,
            TaskState.TASK_STATE_WORKING,
            TaskState.TASK_STATE_COMPLETED,
        }
        while task.status.state != TaskState.TASK_STATE_COMPLETED:
            await asyncio.sleep(0.05)
            task = await client.get_task(GetTaskRequest(id=task.id))
        assert text_of(task) == "later"


async def test_what_a_task_asks_is_answered_by_the_next_message(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message("weather"))
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert task.status.message.parts[0].text == "Which city?"
        seen = await client.get_task(GetTaskRequest(id=task.id))
        assert seen.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        done = await task_of(client, message("Bern", task_id=task.id, context_id=task.context_id))
        assert done.id == task.id
        assert done.status.state == TaskState.TASK_STATE_COMPLETED
        assert text_of(done) == "weather of Bern"
        with pytest.raises(UnsupportedOperationError):
            await task_of(client, message("again", task_id=task.id))


@pytest.mark.parametrize(("word", "outcome"), [("Approve.", "granted"), ("no", "left alone")])
async def test_an_approval_takes_a_clear_word(
    word: str, outcome: str, gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "approves", binding) as client:
        task = await task_of(client, message())
        with pytest.raises(Exception, match="approve"):
            await task_of(client, message("well, maybe", task_id=task.id))
        done = await task_of(client, message(word, task_id=task.id))
        assert text_of(done) == outcome


async def test_a_task_that_waits_can_be_cancelled(gateway: Organisation, binding: str) -> None:
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message())
        ended = await client.cancel_task(CancelTaskRequest(id=task.id))
        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(CancelTaskRequest(id=task.id))


async def test_a_reader_that_leaves_stops_nothing_and_comes_back(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "slow", binding, streaming=True) as client:
        first = client.send_message(SendMessageRequest(message=message()))
        task = (await anext(first)).task
        first_message = (await anext(first)).artifact_update
        assert first_message.artifact.parts[0].text.startswith("0 ")
        await first.aclose()  # type: ignore[attr-defined]
        second = client.subscribe(SubscribeToTaskRequest(id=task.id))
        third = client.subscribe(SubscribeToTaskRequest(id=task.id))
        for reader in (second, third):
            assert (await anext(reader)).task.id == task.id
            again = (await anext(reader)).artifact_update
            assert again.artifact.parts[0].text.startswith("0 ")
            assert not again.append
        ended = await client.cancel_task(CancelTaskRequest(id=task.id))
        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        last = [each async for each in second][-1]
        assert last.status_update.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(UnsupportedOperationError):
            await anext(client.subscribe(SubscribeToTaskRequest(id=task.id)))


async def test_an_agent_may_reject_a_task_or_fail_at_it(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "rejects", binding) as client:
        task = await task_of(client, message())
        assert task.status.state == TaskState.TASK_STATE_REJECTED
    async with calling(gateway, "fails", binding) as client:
        task = await task_of(client, message())
        assert task.status.state == TaskState.TASK_STATE_FAILED
        assert "secret" not in str(task)


async def test_tasks_are_listed_by_context_state_and_page(
    gateway: Organisation, binding: str
) -> None:
    token = gateway.new_token(new_name("lister"))
    async with calling(gateway, "echo", binding, token=token) as client:
        context = new_name("context")
        tasks = [await task_of(client, message(f"m{i}", context_id=context)) for i in range(3)]
        await task_of(client, message("elsewhere"))
        assert {task.context_id for task in tasks} == {context}
        page = await client.list_tasks(ListTasksRequest(context_id=context, page_size=2))
        assert [each.id for each in page.tasks] == [tasks[2].id, tasks[1].id]
        assert (page.total_size, page.page_size) == (3, 2)
        assert not any(each.artifacts for each in page.tasks)
        more = ListTasksRequest(
            context_id=context, page_size=2, page_token=page.next_page_token, include_artifacts=True
        )
        rest = await client.list_tasks(more)
        assert [(each.id, text_of(each)) for each in rest.tasks] == [(tasks[0].id, "m0")]
        assert rest.next_page_token == ""
        working = ListTasksRequest(status=TaskState.TASK_STATE_WORKING)
        assert (await client.list_tasks(working)).total_size == 0
        done = ListTasksRequest(status=TaskState.TASK_STATE_COMPLETED)
        assert (await client.list_tasks(done)).total_size == 4


def wish_for(receivers: Receivers, task: str, name: str) -> TaskPushNotificationConfig:
    url = receivers.url("well", f"/{name}")
    wish = TaskPushNotificationConfig(task_id=task, id=name, url=url, token="seen")
    wish.authentication.scheme = "Bearer"
    wish.authentication.credentials = "hidden"
    return wish


async def test_where_a_task_is_told_of_is_named_shown_and_taken_back(
    gateway: Organisation, receivers: Receivers, binding: str
) -> None:
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message())
        wish = wish_for(receivers, task.id, new_name("mine"))
        made = await client.create_task_push_notification_config(wish)
        assert (made.id, made.task_id, made.url, made.token) == (wish.id, task.id, wish.url, "seen")
        assert (made.authentication.scheme, made.authentication.credentials) == ("Bearer", "")
        one = GetTaskPushNotificationConfigRequest(task_id=task.id, id=wish.id)
        assert await client.get_task_push_notification_config(one) == made
        every = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        assert list((await client.list_task_push_notification_configs(every)).configs) == [made]
        away = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id=wish.id)
        await client.delete_task_push_notification_config(away)
        with pytest.raises(TaskNotFoundError):
            await client.get_task_push_notification_config(one)
        assert not (await client.list_task_push_notification_configs(every)).configs


async def test_who_wants_to_be_told_is_told_of_a_question_and_of_the_end(
    gateway: Organisation, receivers: Receivers, binding: str
) -> None:
    name = new_name("push")
    async with calling(gateway, "asks", binding) as client:
        wish = wish_for(receivers, "", name)
        task = await task_of(client, message(), task_push_notification_config=wish)
        await task_of(client, message("Bern", task_id=task.id))

        def received() -> list[dict[str, Any]]:
            return [each for each in receivers.received("well") if each["path"] == f"/{name}"]

        await asyncio.to_thread(until, lambda: len(received()) == 2)
    bodies = [json.loads(each["body"])["task"] for each in received()]
    states = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]
    assert sorted(each["status"]["state"] for each in bodies) == sorted(states)
    assert {each["id"] for each in bodies} == {task.id}
    for each in received():
        fields = each["headers"]
        assert fields["authorization"] == "Bearer hidden"
        assert fields["x-a2a-notification-token"] == "seen"
        assert "webhook-signature" in fields


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/x", "http://169.254.169.254/latest", "https://10.0.0.1/", "ftp://a/"],
)
async def test_an_address_that_may_not_be_dialled_is_refused(
    url: str, gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message())
        wish = TaskPushNotificationConfig(task_id=task.id, url=url)
        with pytest.raises(Exception, match=r"call back to that address|400"):
            await client.create_task_push_notification_config(wish)
        with pytest.raises(Exception, match=r"call back to that address|400"):
            await task_of(client, message(), task_push_notification_config=wish)


async def test_another_caller_sees_nothing_of_a_task(gateway: Organisation, binding: str) -> None:
    other = gateway.new_token(new_name("other"))
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message())
    async with calling(gateway, "asks", binding, token=other, streaming=True) as stranger:
        for refused in (
            stranger.get_task(GetTaskRequest(id=task.id)),
            stranger.cancel_task(CancelTaskRequest(id=task.id)),
            anext(stranger.subscribe(SubscribeToTaskRequest(id=task.id))),
            sent(stranger, message("Bern", task_id=task.id)),
            stranger.list_task_push_notification_configs(
                ListTaskPushNotificationConfigsRequest(task_id=task.id)
            ),
        ):
            with pytest.raises(TaskNotFoundError):
                await refused
        assert (await stranger.list_tasks(ListTasksRequest())).total_size == 0


async def test_a_reader_of_a_task_that_waits_is_told_the_rest(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "asks", binding, streaming=True) as client:
        first = await sent(client, message("weather"))
        task = first[0].task
        assert first[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        reader = client.subscribe(SubscribeToTaskRequest(id=task.id))
        assert (await anext(reader)).task.id == task.id
        asked = (await anext(reader)).status_update.status
        assert asked.state == TaskState.TASK_STATE_INPUT_REQUIRED
        await sent(client, message("Bern", task_id=task.id))
        rest = [each async for each in reader]
        assert rest[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
        parts = [
            each.artifact_update.artifact.parts for each in rest if each.artifact_update.task_id
        ]
        assert "".join(part.text for some in parts for part in some) == "weather of Bern"


async def test_the_history_of_a_task_tells_what_was_asked_and_answered(
    gateway: Organisation, binding: str
) -> None:
    async with calling(gateway, "asks", binding) as client:
        task = await task_of(client, message("weather"))
        await task_of(client, message("Bern", task_id=task.id))
        whole = (await client.get_task(GetTaskRequest(id=task.id))).history
        assert [each.parts[0].text for each in whole] == ["weather", "Which city?", "Bern"]
        more = (await client.get_task(GetTaskRequest(id=task.id, history_length=9))).history
        assert list(more) == list(whole)
        last = (await client.get_task(GetTaskRequest(id=task.id, history_length=1))).history
        assert [each.parts[0].text for each in last] == ["Bern"]
