"""A stored script in every field that somebody else may write runs on no page of the console."""

import re
from contextlib import closing
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from carnet.http.exchange import Row
from carnet.wire.grammar.sse import SseEvent, SseReader
from tests.browser.hostile.looking import looking, paths_of
from tests.browser.hostile.scene import EVIL, FORMULA, MARK, SHORT, WORD, Hostile
from tests.console.pages import PAGES
from tests.support.http import stream

LIVE = [row for row in PAGES if row.path.startswith("/console/live/")]
FILES = [row for row in PAGES if row.path.endswith(("/csv", "/export"))]
SHOWN = [row for row in PAGES if row not in LIVE and row not in FILES]
WHOLE = [row for row in SHOWN if row.media == "text/html"]
# What a page may be asked for, by whatever name.
ASKED = ("q", "search", "state", "agent", "path", "status", "after", "all", "set", "run", "before")
# The pages on which the text must have been seen: else nothing was tried.
WRITTEN = {
    *("/console/runs", "/console/runs/{run}", "/console/runs/{run}/transcript"),
    *("/console/runs/{run}/wire", "/console/chat", "/console/chat/{conversation}"),
    *("/console/chat/{conversation}/thread", "/console/inbox", "/console/inbox/{ask}/card"),
    *("/console/agents/{agent}", "/console/triggers/{kind}/{trigger}/card", "/console/people"),
    "/console/ledger",
}


def named(row: Row) -> str:
    return row.path


@pytest.mark.parametrize("row", SHOWN, ids=named)
def test_what_is_stored_is_text_on_every_page(
    chromium: Browser, hostile: Hostile, row: Row
) -> None:
    with looking(chromium, hostile) as opened:
        seen = []
        for path in paths_of(row, hostile):
            opened.open(path)
            seen.append(opened.shows_it())
        assert any(seen) or row.path not in WRITTEN


@pytest.mark.parametrize("row", WHOLE, ids=named)
def test_what_a_page_is_asked_for_is_text_on_it(
    chromium: Browser, hostile: Hostile, row: Row
) -> None:
    at = paths_of(row, hostile)[0]
    for name in ASKED:  # by itself: what is refused shows nothing of the others
        reply = hostile.browser.send("GET", f"{at}?{urlencode({name: EVIL})}")
        assert f"<img {MARK}".encode() not in reply.body, name
    with looking(chromium, hostile) as opened:
        opened.open(f"{at}?{urlencode(dict.fromkeys(ASKED, EVIL))}")
        opened.open(f"{at}?{WORD}")


@pytest.mark.parametrize("row", WHOLE, ids=named)
def test_a_twin_is_data_and_nothing_else(chromium: Browser, hostile: Hostile, row: Row) -> None:
    with looking(chromium, hostile) as opened:
        for path in paths_of(row, hostile)[:4]:
            twin = "/console/overview.json" if path == "/console/" else f"{path}.json"
            reply = hostile.browser.send("GET", twin)
            assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["x-frame-options"] == "DENY"
            opened.open(twin)


def test_what_is_kept_is_text_wherever_it_is_opened(chromium: Browser, hostile: Hostile) -> None:
    browser = hostile.browser
    talks = browser.send("GET", "/conversations?limit=50").json["conversations"]
    asks = browser.send("GET", "/approvals?status=all").json["approvals"]
    files = browser.send("GET", "/memory/assistant").json["files"]
    written = [f"/console/chat/{each['id']}" for each in talks]
    written += [f"/console/inbox/{each['id']}/card?drawer" for each in asks]
    written += ["/console/memory?agent=assistant&path=notes.md", "/console/people/mallory"]
    written += ["/console/memory?agent=assistant&search=taken", "/console/inbox?status=all"]
    written += ["/console/triggers/schedules/daily/card"]
    others = [f"/console/memory?agent=assistant&path={each['path']}" for each in files]
    others += [f"/console/agents/{each}" for each in ("says", "leads", "assistant")]
    others += ["/console/triggers/hooks/gong/card", "/console/chat?archived=true"]
    with looking(chromium, hostile) as opened:
        for path in others:
            opened.open(path)
        for path in written:
            opened.open(path)
            assert opened.shows_it(), path


def test_the_drawers_show_text(chromium: Browser, hostile: Hostile) -> None:
    with looking(chromium, hostile) as opened:
        page = opened.page
        drawer = page.locator("#drawer")
        for path in ("/console/runs/", "/console/inbox?status=all", "/console/triggers"):
            opened.open(path if path[-1] != "/" else paths_of_run(hostile))
            openers = page.locator('[hx-target="#drawer"][hx-get]')
            for number in range(openers.count()):
                openers.nth(number).click()
                expect(drawer).to_be_visible()
                opened.check(f"{path} {number}")
                page.keyboard.press("Escape")
        opened.open(paths_of_run(hostile))
        page.locator(".waterfall button").first.click()
        for name, words in (("Replay this turn", "from the record"), ("As a new turn", "status")):
            drawer.get_by_role("button", name=name).click()
            expect(drawer.locator(".replayed")).to_contain_text(words)
            opened.check(name)
        opened.open("/console/agents/clerk")
        page.get_by_role("button", name="Try").click()
        expect(page.locator("#tried-1")).to_contain_text("data-evil")
        opened.check("try")


def paths_of_run(hostile: Hostile) -> str:
    (row,) = [row for row in PAGES if row.path == "/console/runs/{run}"]
    return paths_of(row, hostile)[0]


@pytest.mark.parametrize("row", LIVE, ids=named)
def test_what_is_stored_adds_no_event_to_a_stream(hostile: Hostile, row: Row) -> None:
    cookie = hostile.browser.cookie
    for path in paths_of(row, hostile):
        frames = stream("GET", hostile.acme.url + path, [("cookie", cookie)])
        reader, events = SseReader(), list[SseEvent]()
        with closing(frames):
            while not events:
                events = reader.feed(next(frames))
        assert {each.event for each in events} <= {"message", "changed", "end"}
        assert "<img" not in events[0].data


def test_what_leaves_as_a_file_is_named_and_typed_by_us(hostile: Hostile) -> None:
    browser = hostile.browser
    at = f"/conversations/{hostile.names['conversation']}/export"
    kinds = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}
    for form, kind in kinds.items():
        reply = browser.send("GET", f"{at}?format={form}")
        assert (reply.status, reply.headers["content-type"]) == (200, kind)
        assert reply.headers["x-content-type-options"] == "nosniff"
        name = reply.headers["content-disposition"]
        assert re.fullmatch(r'attachment; filename="cnv_[0-9a-z-]+\.(json|md)"', name)
    postings = browser.send("GET", "/console/ledger/export")
    assert postings.headers["content-type"] == "application/json; charset=utf-8"
    assert postings.headers["content-disposition"] == 'attachment; filename="ledger.json"'
    assert postings.headers["x-content-type-options"] == "nosniff"
    table = browser.send("GET", "/console/ledger/csv")
    assert table.headers["content-disposition"] == 'attachment; filename="ledger.csv"'
    assert table.headers["x-content-type-options"] == "nosniff"
    assert f"'{FORMULA[:10]}".encode() in table.body
    assert re.search(rb'(^|,)"?[=+@\t\r-]', table.body, re.MULTILINE) is None


def test_what_is_refused_is_told_as_text(chromium: Browser, hostile: Hostile) -> None:
    with looking(chromium, hostile) as opened:
        for path in (
            f"/console/runs/{WORD.replace('/', '%2F').replace(' ', '%20')}x",
            f"/console/chat/{urlencode({'x': SHORT})[2:]}",
            f"/console/runs?{urlencode({'q': f'evil:{SHORT}'})}",
            f"/console/agents/{urlencode({'x': SHORT})[2:]}",
            f"/-/errors/{urlencode({'x': SHORT})[2:]}",
            f"/docs/{urlencode({'x': SHORT})[2:]}",
            f"/sign-in?{urlencode({'code': SHORT})}",
        ):
            opened.open(path)
