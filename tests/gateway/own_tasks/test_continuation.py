"""A message that goes on with a task changes nothing of where it stands and what it may spend."""

from typing import Any

import pytest

from carnet.testing.stage import Organisation
from tests.gateway.own_tasks.conftest import Caller


def test_what_a_task_may_spend_holds_after_a_question(gateway: Organisation) -> None:
    """Its caller has said once what it is willing to spend, and does not have to say it again."""
    caller = Caller(gateway, "spender")
    given = {"datalayer": {"budget": {"cost": 5, "currency": "credits"}}}
    task = caller.send("budgets", "begin", metadata=given)
    done = caller.send("budgets", "go on", taskId=task["id"])
    ((part,),) = [artifact["parts"] for artifact in done["artifacts"]]
    assert part["text"].count("Spending(money=5000000, currency='credits'") == 2


@pytest.mark.parametrize("depth", ["1", "3", "99"])
def test_a_task_does_not_go_on_from_a_deeper_place(gateway: Organisation, depth: str) -> None:
    """I4: an answer out of a chain would let that chain begin anew at the depth of the task."""
    caller = Caller(gateway, f"deeper-{depth}")
    task = caller.send("asks", "begin")
    reply: dict[str, Any] = {"parts": [{"text": "Bern"}], "taskId": task["id"]}
    message = {"messageId": "deep", "role": "ROLE_USER", **reply}
    fields = {"x-tangle-forwarded-depth": depth}
    refused = caller.ask("asks", "SendMessage", {"message": message}, **fields)["error"]
    assert refused["data"][0]["metadata"]["code"] == "chain_mismatch"
    done = caller.send("asks", "shallow", **reply)
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
