"""A conversation is drawn as it comes: what agents say, do and ask is text in it, at once."""

import json

from playwright.sync_api import Browser, Page, expect

from tests.browser.hostile.looking import looking
from tests.browser.hostile.scene import EVIL, Hostile
from tests.engine.process import tool_call
from tests.support.model import streamed


def say_to(page: Page, agent: str) -> None:
    page.get_by_label("Agent", exact=True).select_option(agent)
    page.get_by_label("Say something").fill(EVIL)
    page.get_by_label("Say something").press("Control+Enter")


def test_what_agents_stream_is_drawn_as_text(chromium: Browser, hostile: Hostile) -> None:
    go = hostile.acme.folder / "go"
    go.unlink(missing_ok=True)
    with looking(chromium, hostile) as opened:
        page = opened.open("/console/chat")
        say_to(page, "slowly")
        expect(page.locator("#answer .answered .words")).to_contain_text("data-evil")
        expect(page.locator("#answer .asked .words")).to_contain_text("data-evil")
        opened.check("while it is said")
        go.touch()
        last = page.locator("#thread article").last
        expect(last.locator(".words").first).to_contain_text("data-evil")
        expect(page.locator("#answer")).to_be_empty()
        opened.check("when it was said")
        page.locator("#events summary").click()
        expect(page.locator("#frames")).to_contain_text("data-evil")
        for agent in ("says", "fails", "chair", "leads"):
            count = page.locator("#thread article").count()
            say_to(page, agent)
            expect(page.locator("#answer")).to_be_empty()
            expect(page.locator("#thread article").nth(count + 1)).to_be_visible()
            opened.check(agent)


def test_tools_and_questions_are_drawn_as_text(chromium: Browser, hostile: Hostile) -> None:
    replies = [tool_call("read_page", json.dumps({"name": EVIL})), streamed(EVIL, "the end")]
    hostile.model.reply = lambda _: replies.pop(0)
    with looking(chromium, hostile) as opened:
        page = opened.open("/console/chat")
        say_to(page, "assistant")
        last = page.locator("#thread article").last
        expect(last.locator("> .answered > .words")).to_contain_text("the end")
        last.locator("summary").first.click()
        opened.check("a tool")
        for agent, answer in (("pays", "Deny"), ("inputs", "Deny"), ("chooses", "Deny")):
            say_to(page, agent)
            card = page.locator("#thread .ask").last
            expect(card.get_by_role("button", name=answer)).to_be_visible()
            opened.check(f"{agent} asks")
            card.get_by_role("button", name=answer).click()
            expect(card.locator(".state").first).to_contain_text("ed")
            expect(page.locator("#answer")).to_be_empty()
            opened.check(f"{agent} was answered")
