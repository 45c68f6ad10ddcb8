"""Talking to agents in a real browser, and answering what they ask."""

import json

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from carnet.testing.wait import until
from tests.browser import accessibility
from tests.browser.scene import Scene, Scheme, Watched, sign_in
from tests.engine.process import tool_call
from tests.support.http import request
from tests.support.model import streamed

SCRIPT = "<script>document.title='taken'</script>"
SIZES = [(1300, "light"), (360, "dark")]
LIVE = "/console/live/runs/"
# The page is turned away from, or to.
TURN = """() => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => HIDDEN });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def say_to(page: Page, agent: str, text: str) -> None:
    page.get_by_label("Agent", exact=True).select_option(agent)
    page.get_by_label("Say something").fill(text)
    page.get_by_label("Say something").press("Control+Enter")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_talks_to_agents_and_watches_them_answer(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/chat")
        expect(page.get_by_role("heading", name="Chat")).to_be_visible()
        scene.stay()
        say_to(page, "chair", SCRIPT)
        answer = page.locator("#answer")
        expect(answer.locator(".answered .words")).to_have_text("Let us hear ")  # as it comes
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        scene.go()
        last = page.locator("#thread article").last
        expect(last.locator("strong")).to_have_text("@critic@globex.example")  # who was mentioned
        expect(last.locator(".pill")).to_have_text("globex.example")
        expect(answer).to_be_empty()
        assert "taken" not in page.title()
        assert "/console/chat/cnv_" in page.url

        arguments = json.dumps({"name": SCRIPT})
        replies = [tool_call("read_page", arguments), streamed("It says ", "100.")]
        scene.model.reply = lambda _: replies.pop(0)
        say_to(page, "assistant", "Read it.")
        expect(last.locator(".tool")).to_contain_text("✓ read_page")
        expect(last.locator("> .answered > .words")).to_have_text("It says 100.")
        accessibility.check(page)

        scene.stay()
        say_to(page, "chair", "Stop me.")
        expect(answer.locator(".answered .words")).to_have_text("Let us hear ")
        page.get_by_role("button", name="Stop").click()
        expect(last.locator(".state")).to_have_text("cancelled")
        expect(page.get_by_role("button", name="Stop")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_pays_in_the_conversation_that_asks_her(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/chat")
        say_to(page, "shop", "the report")
        card = page.locator("#thread .ask")
        expect(card).to_contain_text("0.5 credits")
        accessibility.check(page)
        card.get_by_role("button", name="Pay").click()
        last = page.locator("#thread article").last
        expect(last.locator(".words")).to_have_text("accepted: the report")
        expect(card).to_contain_text("accepted by alice")
        run = last.get_by_role("link", name="run", exact=True).get_attribute("href")
        assert run is not None
        path = f"/ledger?run={run.rpartition('/')[2]}"
        (posting,) = scene.acme.get(path, token=scene.token).json["entries"]
        assert posting["amount"] == "0.5"


def test_an_answer_goes_on_in_the_page_wherever_its_question_is_answered(
    chromium: Browser, scene: Scene
) -> None:
    with Watched(chromium, scene, width=1300, scheme="light") as page:
        chat = f"{scene.acme.url}/console/chat"
        page.goto(chat)
        sign_in(page, scene.token)
        answer, last = page.locator("#answer"), page.locator("#thread article").last
        for is_opened_between in (False, True):
            scene.stay()
            page.goto(chat)
            say_to(page, "ponders", "think")
            asked = page.locator("#thread .ask").last
            expect(asked).to_contain_text("May I think?")
            here = page.url
            if is_opened_between:
                page.goto(f"{scene.acme.url}/console/inbox")
            approve(scene)
            if is_opened_between:
                page.goto(here)
            so_far = answer.locator(".answered .words")
            expect(so_far).to_have_text("So far so good. ")
            scene.go()
            words = last.locator("> .answered > .words")
            expect(words).to_have_text("So far so good. At last accepted.")
            expect(answer).to_be_empty()
            expect(page.locator("[data-goes-on]")).to_have_count(0)


def test_an_answer_is_read_along_after_a_refusal_of_a_moment(
    chromium: Browser, scene: Scene
) -> None:
    refusals = [503, 429]

    def refused(route: Route) -> None:
        if not refusals:
            route.fallback()
            return
        error = {"error": {"code": "later", "message": "Not now."}}
        route.fulfill(status=refusals.pop(), json=error)

    page = chromium.new_page()
    page.goto(f"{scene.acme.url}/console/chat")
    sign_in(page, scene.token)
    page.goto(f"{scene.acme.url}/console/chat")
    scene.stay()
    say_to(page, "ponders", "think")
    expect(page.locator("#thread .ask")).to_be_visible()
    page.route("**/conversations/*/answer", refused)
    approve(scene)
    so_far = page.locator("#answer .answered .words")
    expect(so_far).to_have_text("So far so good. ")
    assert refusals == []
    scene.go()
    expect(page.locator("#answer")).to_be_empty()
    page.close()


def test_one_run_is_watched_by_a_page_and_none_while_it_is_hidden(
    chromium: Browser, scene: Scene
) -> None:
    begun: list[str] = []
    with Watched(chromium, scene, width=1300, scheme="light") as page:
        page.goto(f"{scene.acme.url}/console/chat")
        sign_in(page, scene.token)
        page.goto(f"{scene.acme.url}/console/chat")
        for count in (1, 2):
            say_to(page, "asks", f"go {count}")
            expect(page.locator("#thread .ask")).to_have_count(count)
        page.on("request", lambda asked: begun.append(asked.url) if LIVE in asked.url else None)
        with page.expect_request(f"**{LIVE}**"):
            page.reload()
        with page.expect_event("requestfailed", lambda asked: LIVE in asked.url):
            page.evaluate(TURN.replace("HIDDEN", "true"))
        with page.expect_request(f"**{LIVE}**"):
            page.evaluate(TURN.replace("HIDDEN", "false"))
        newest = page.locator("#thread article").last.get_attribute("data-waits")
        assert newest is not None
        assert [url.partition(LIVE)[2].partition("?")[0] for url in begun] == [newest, newest]
        for left in (1, 0):
            approve(scene)
            expect(page.locator("#thread .words", has_text="accepted: go")).to_have_count(2 - left)


def test_what_is_opened_is_new_no_longer(chromium: Browser, scene: Scene) -> None:
    scene.go()
    fields = [("authorization", f"Bearer {scene.token}"), ("content-type", "application/json")]
    body = json.dumps({"content": "look away", "agent": "ponders"}).encode()
    sent = request("POST", f"{scene.acme.url}/message", fields, body)
    name = sent.headers["x-conversation-id"]
    approve(scene)  # and nobody reads what comes of it
    until(lambda: unread(scene, name) == 1)
    watched = Watched(chromium, scene, width=1300, scheme="light")
    with watched as page:
        watched.sign_in("/console/chat")
        line = page.locator(".past tr", has_text="look away")
        expect(line.locator(".pill")).to_have_text("1 new")
        line.get_by_role("link").click()
        expect(page.locator("#thread")).to_contain_text("At last accepted.")
        expect(line.locator(".pill")).to_have_count(0)
        until(lambda: unread(scene, name) == 0)


def unread(scene: Scene, name: str) -> int:
    found: int = scene.acme.get(f"/conversations/{name}", token=scene.token).json["unread"]
    return found


def approve(scene: Scene) -> None:
    """Answer the newest question elsewhere, as by the command or from another page."""
    ask = scene.acme.get("/approvals", token=scene.token).json["approvals"][0]
    fields = [("authorization", f"Bearer {scene.token}"), ("content-type", "application/json")]
    path, body = f"{scene.acme.url}/approvals/{ask['id']}", b'{"outcome": "accepted"}'
    assert request("POST", path, fields, body).status == 200


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_somebody_declines_in_the_inbox_by_keyboard(
    chromium: Browser, scene: Scene, width: int, scheme: Scheme
) -> None:
    asked = [{"content": f"go {n} {SCRIPT}", "agent": "asks"} for n in range(2)]
    for each in asked:
        fields = [("authorization", f"Bearer {scene.token}"), ("content-type", "application/json")]
        body = json.dumps(each).encode()
        assert request("POST", f"{scene.acme.url}/message", fields, body).status == 200
    watched = Watched(chromium, scene, width=width, scheme=scheme)
    with watched as page:
        watched.sign_in("/console/inbox")
        rows = page.locator("#inbox-rows tr")
        expect(rows).to_have_count(2)
        accessibility.check(page)
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("j")
        opener = rows.first.get_by_role("button", name="Approval")
        opener.focus()
        page.keyboard.press("Enter")
        drawer = page.locator("#drawer")
        expect(drawer.locator(".message")).to_contain_text("May I go 1")
        accessibility.check(page)
        drawer.get_by_role("button", name="Deny").click()
        expect(drawer).to_contain_text("rejected")
        expect(rows).to_have_count(1)  # the list goes on by itself
        page.keyboard.press("Escape")
        rows.first.get_by_role("checkbox").check()
        page.get_by_role("button", name="Deny those that are marked").click()
        expect(rows.first).to_contain_text("Nobody asks you")
        assert "taken" not in page.title()
