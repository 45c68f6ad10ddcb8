"""Tasks: asked for by token and by signature, polled, listed, cancelled, called back."""

from typing import Any

from carnet.testing.wait import until
from tests.exchanges.cases.chains import RUN, TURN
from tests.exchanges.cases.signed import Signing
from tests.exchanges.scene import ALICE, BOB
from tests.exchanges.stage import Answer, Stage
from tests.support.signing.signed import Sender, Signed, digest, now, sign

TASK = "/agent/task"
CALLBACK = "<callback of an OpenAI task>"


def about(sender: Sender, method: str, target: str, *, path: str = "") -> Signed:
    """A signed request about a task, without a body."""
    fields = (("content-type", "application/json"), ("content-digest", digest(b"")))
    request = Signed(method=method, target=target, headers=fields, body=b"")
    return sign(sender, request, path=path)


def ended(stage: Stage, task: str, token: str) -> None:
    """Wait until a task has ended."""
    page = stage.plain("GET", f"/tasks/{task}", token=token)
    until(lambda: stage.quietly(page).json["status"] in {"done", "failed"})


def by_token(stage: Stage) -> None:
    """POST /tasks and what follows."""
    hook = f"{stage.scene.taps['parts'].url}/hooks/well"

    def ask(
        title: str, model: str, text: str = "x", *headers: tuple[str, str], **more: Any
    ) -> Answer:
        how = {name: more.pop(name) for name in ("token",) if name in more}
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        return stage.post(title, "/tasks", body, *headers, **how)

    task = ask("a task", "works", "gate-1", (RUN, "tasked"), (TURN, "t")).json["taskId"]
    stage.has_begun("gate-1")
    ask("the same task again", "works", "gate-1", (RUN, "tasked"), (TURN, "t"))
    ask("the same turn with another text", "works", "gate-2", (RUN, "tasked"), (TURN, "t"))
    stage.get("a task that runs", f"/tasks/{task}", hides=_running(stage, task))
    stage.open("gate-1")
    ended(stage, task, "acme")
    stage.get("a task that is done", f"/tasks/{task}")
    stage.get("a task of somebody else", f"/tasks/{task}", token="roaming")
    stage.get("a task for an operator", f"/tasks/{task}", token="overseer")
    stage.send(
        "a task of a token, polled by its id",
        stage.plain("GET", f"/agents/works{TASK}/{task}", token=None),
    )
    stage.get("the run of a task", "/runs/tasked")
    failed = ask("a task that fails", "broken", "x", token="roaming").json["taskId"]
    ended(stage, failed, "roaming")
    stage.get("a task that has failed", f"/tasks/{failed}", token="roaming")
    spent = ask("a task at a price", "paid", "x", token="roaming").json["taskId"]
    ended(stage, spent, "roaming")
    skilled = ask(
        "a task of a skill",
        "clerk",
        "x",
        carnet={"skill": "add", "payload": {"a": 1, "b": 2}},
        token="roaming",
    ).json["taskId"]
    ended(stage, skilled, "roaming")
    stage.get("the result of a skill", f"/tasks/{skilled}", token="roaming")
    far = ask("a task of an agent elsewhere", "afar", "far", token="roaming").json["taskId"]
    ended(stage, far, "roaming")
    stage.get("the result of an agent elsewhere", f"/tasks/{far}", token="roaming")
    stage.get("the tasks of a token", "/tasks", token="roaming")
    stage.get("the failed ones", "/tasks?state=failed", token="roaming")
    stage.get("those of an agent", "/tasks?agent=paid&limit=1", token="roaming")
    stage.get("a state that is none", "/tasks?state=lost")
    stage.get("two agents", "/tasks?agent=a&agent=b")
    stage.get("no task", "/tasks/nothing")
    stage.get("tasks without the right", "/tasks", token="bare")
    stopped = ask("a task that will be cancelled", "works", "gate-never").json["taskId"]
    stage.has_begun("gate-never")
    stage.post("cancelling without the right", f"/tasks/{stopped}/cancel", b"", token="reader")
    stage.post("cancelling somebody else's", f"/tasks/{stopped}/cancel", b"", token="roaming")
    stage.quietly(stage.plain("POST", f"/tasks/{stopped}/cancel"))
    ended(stage, stopped, "acme")
    stage.get("a task that was cancelled", f"/tasks/{stopped}")
    stage.post("cancelling what was cancelled", f"/tasks/{stopped}/cancel", b"")
    stage.post("cancelling nothing", "/tasks/nothing/cancel", b"")
    ask("a task that is a stream", "echo", stream=True)
    ask("a task with a callback that is no URL", "echo", callback=7)
    ask("a task with a callback that is forbidden", "echo", callback="http://10.0.0.1/in")
    ask("a task with a callback in plain HTTP", "echo", callback="http://hooks.example/in")
    for name in ("callbackUrl", "skill", "delegationToken", "mode"):
        ask(f"a task with {name}", "echo", **{name: "x"})
    ask("a task of nobody", "nobody")
    ask("a task of a skill that is not there", "clerk", carnet={"skill": "ad"})
    ask("a task without the right", "works", token="bare")
    body = {"model": "echo", "messages": [{"role": "user", "content": "x"}], "callback": hook}
    stage.post("a task with a callback", "/tasks", body, calls=1, hides_passed=CALLBACK)


def _running(stage: Stage, task: str) -> str:
    """What does not depend on when it is asked: progress is written some time after it is told."""
    page = stage.plain("GET", f"/tasks/{task}")
    until(lambda: stage.quietly(page).json["progress"] == 0.5)
    return ""


def by_signature(stage: Stage) -> None:
    """SAMVAD's tasks."""
    signing = Signing(stage, "later")
    hook = f"{stage.scene.taps['parts'].url}/hooks"

    def ask(title: str, agent: str, **given: Any) -> Answer:
        calls = given.pop("calls", 0)
        request = signing.request(agent, path=TASK, mode="async", **given)
        return stage.send(title, request, calls=calls)

    def poll(title: str, agent: str, task: str) -> Answer:
        return stage.send(title, stage.plain("GET", f"/agents/{agent}{TASK}/{task}", token=None))

    def done(agent: str, task: str) -> None:
        page = stage.plain("GET", f"/agents/{agent}{TASK}/{task}", token=None)
        until(lambda: stage.quietly(page).json["status"] in {"done", "failed"})

    same: dict[str, Any] = {"traceId": "later-same", "spanId": "later-same-turn"}
    report: dict[str, Any] = {"skill": "report", "payload": {"gate": "gate-3"}}
    task = ask("a task", "clerk", **report, **same).json["taskId"]
    stage.has_begun("gate-3")
    ask("the same task, signed anew", "clerk", **report, **same)
    page = stage.plain("GET", f"/agents/clerk{TASK}/{task}", token=None)
    until(lambda: stage.quietly(page).json.get("progress") == 0.25)
    poll("a task that runs", "clerk", task)
    poll("a task of another agent", "echo", task)
    stage.send("the task at the root", stage.plain("GET", f"{TASK}/{task}", token=None))
    more = {"skill": "report", "payload": {"gate": "gate-3"}}
    ask("a second one", "clerk", **more)
    ask("one more than a sender may have", "clerk", **more)
    stage.open("gate-3")
    done("clerk", task)
    poll("a task that is done", "clerk", task)
    failed = ask("a task that fails", "clerk", sender=BOB, skill="fails", payload={}).json["taskId"]
    done("clerk", failed)
    poll("a task that has failed", "clerk", failed)
    ask("a skill that is no task", "clerk", sender=BOB, skill="whoami", payload={})
    ask("a payload that does not fit", "clerk", sender=BOB, skill="add", payload={})
    ask("a task of the default agent", "echo", sender=BOB, payload={"text": "hi"})
    ask(
        "a task that is called back",
        "echo",
        sender=BOB,
        payload={"text": "hi"},
        callbackUrl=f"{hook}/well",
        calls=1,
    )
    ask(
        "a task that failed, called back",
        "broken",
        sender=BOB,
        payload={"text": "hi"},
        callbackUrl=f"{hook}/well",
        calls=1,
    )
    ask(
        "a callback to one that is gone",
        "echo",
        sender=BOB,
        payload={"text": "hi"},
        callbackUrl=f"{hook}/gone",
        calls=1,
    )
    ask("a callback that is forbidden", "echo", sender=BOB, callbackUrl="https://127.0.0.1/in")
    ask("a callback that is no URL", "echo", sender=BOB, callbackUrl="in")
    stopped = ask(
        "a task that will be cancelled",
        "clerk",
        sender=BOB,
        skill="report",
        payload={"gate": "gate-4"},
    ).json["taskId"]
    stage.has_begun("gate-4")
    target = f"/agents/clerk{TASK}/{stopped}/cancel"
    stage.send("cancelling without a signature", stage.plain("POST", target, token=None))
    stage.send("cancelling by somebody else", about(ALICE, "POST", target))
    old = sign(BOB, about(BOB, "POST", target), created=int(now()) - 1000)
    stage.send("cancelling with an old signature", old)
    stage.quietly(about(BOB, "POST", target))
    done("clerk", stopped)
    poll("a task that was cancelled", "clerk", stopped)
    stage.send("cancelling what was cancelled", about(BOB, "POST", target))
    poll("no task", "clerk", "nothing")
    stage.send("cancelling nothing", about(BOB, "POST", f"{TASK}/nothing/cancel"))
    at_globex(stage, signing)
    used = signing.request(
        "metered", path=TASK, mode="async", sender=BOB, payload={"text": "gate-3"}
    )
    spent = stage.send("a task of an agent that counts tokens", used).json["taskId"]
    done("metered", spent)
    signing.ask(
        "a sender that has used its tokens", "metered", sender=BOB, payload={"text": "gate-3"}
    )


def at_globex(stage: Stage, signing: Signing) -> None:
    """Where polling asks for a signature."""
    stage.open("gate-5", at="globex")
    request = signing.request(
        "clerk",
        path=TASK,
        mode="async",
        to="agent://clerk.globex.example",
        skill="report",
        payload={"gate": "gate-5"},
    )
    task = stage.send("a task at Globex", request, to="globex").json["taskId"]
    target = f"/agents/clerk{TASK}/{task}"
    until(lambda: stage.quietly(about(ALICE, "GET", target), to="globex").json["status"] == "done")
    stage.send("polled with a signature", about(ALICE, "GET", target), to="globex")
    stage.send("polled without one", stage.plain("GET", target, token=None), to="globex")
    stage.send("polled by somebody else", about(BOB, "GET", target), to="globex")
