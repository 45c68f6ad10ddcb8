"""Notifications: to several addresses, until one is taken back, and to none that may not be."""

import json
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.support.a2a.wire import BINDINGS, Line, message, new_name
from tests.support.webhooks.receivers import Receivers

Lines = dict[str, Line]
pytestmark = pytest.mark.parametrize("binding", BINDINGS)
CREATE, DELETE = "CreateTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"
LIST, GET = "ListTaskPushNotificationConfigs", "GetTaskPushNotificationConfig"


def reported(receivers: Receivers, name: str) -> list[dict[str, Any]]:
    return [each for each in receivers.received("well") if each["path"] == f"/{name}"]


def test_every_address_is_told_one_event_of_a_stream_but_not_one_that_was_deleted(
    lines: Lines, receivers: Receivers, binding: str
) -> None:
    line = lines["asks"]
    task = line.task(binding)["id"]
    names = [new_name("push") for _ in range(3)]
    for name in names:
        wish = {"taskId": task, "id": name, "url": receivers.url("well", f"/{name}")}
        line.result(binding, CREATE, **wish)
    gone = {"taskId": task, "id": names[2]}
    assert [line.result(binding, DELETE, **gone) for _ in range(2)] == [{}, {}]
    line.task(binding, "Bern", taskId=task)
    until(lambda: all(reported(receivers, name) for name in names[:2]))
    for name in names[:2]:
        (event,) = [json.loads(each["body"]) for each in reported(receivers, name)]
        assert event.keys() == {"task"}
        assert event["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert reported(receivers, names[2]) == []


def test_addresses_are_listed_page_by_page(
    lines: Lines, receivers: Receivers, binding: str
) -> None:
    line = lines["asks"]
    task = line.task(binding)["id"]
    for name in ("a", "b", "c"):
        line.result(binding, CREATE, taskId=task, id=name, url=receivers.url("well"))
    pages: list[list[str]] = []
    token = ""
    while not pages or token:
        more = {"pageToken": token} if token else {}
        page = line.result(binding, LIST, taskId=task, pageSize=2, **more)
        pages.append([each["id"] for each in page["configs"]])
        token = page.get("nextPageToken", "")
    assert pages == [["a", "b"], ["c"]]
    assert "nextPageToken" not in line.result(binding, LIST, taskId=task)
    for wrong in ({"pageSize": 0}, {"pageToken": "x"}):
        assert next(iter(wrong)) in line.error(binding, LIST, taskId=task, **wrong)["message"]


def test_an_address_is_kept_while_its_task_is_and_its_secret_is_not_told(
    lines: Lines, receivers: Receivers, binding: str
) -> None:
    known = {"scheme": "Bearer", "credentials": "hush-hush"}
    wish = {"id": "one", "url": receivers.url("well"), "authentication": known}
    given = message()
    answer = lines["asks"].ask(
        binding, "SendMessage", **given, configuration={"taskPushNotificationConfig": wish}
    )
    found = answer.json.get("result", answer.json)["task"]["id"]
    shown = lines["asks"].ask(binding, GET, taskId=found, id="one")
    assert b"hush-hush" not in answer.body + shown.body
    config = shown.json.get("result", shown.json)
    assert (config["url"], config["authentication"]) == (wish["url"], {"scheme": "Bearer"})


@pytest.mark.parametrize("url", ["http://198.51.100.7/in", "http://[::1]:9/", "file:///etc/x"])
def test_an_address_that_is_not_encrypted_or_leads_inward_is_refused(
    lines: Lines, binding: str, url: str
) -> None:
    task = lines["asks"].task(binding)["id"]
    refused = lines["asks"].error(binding, CREATE, taskId=task, url=url)
    assert refused["code"] in {400, 403, -32602, -32050}
    assert lines["asks"].result(binding, LIST, taskId=task)["configs"] == []
