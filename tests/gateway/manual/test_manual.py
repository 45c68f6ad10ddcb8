"""`/docs/`, as a browser is given it."""

import re

import pytest

from tests.docs.test_quickstart import ROOT
from tests.support.http import request
from tests.support.organisation import Organisation

POLICY = "default-src 'none'; style-src 'self'; img-src 'self'"
PAGES = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def home(acme: Organisation) -> str:
    return acme.url


def test_every_page_is_served_and_asks_nothing_of_another_host(home: str) -> None:
    for page in PAGES:
        reply = request("GET", f"{home}/docs/{page.removesuffix('.md')}")
        assert reply.status == 200, page
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert reply.headers["content-security-policy"].startswith(POLICY)
        text = reply.body.decode()
        assert "<script" not in text
        asked = re.findall(r'(?:src|<link[^>]*href)="([^"]*)"', text)
        assert all(each.startswith("/docs/") for each in asked), page
    assert len(PAGES) > 60


def test_every_link_of_the_pages_leads_to_one(home: str) -> None:
    served = {}
    for page in PAGES:
        path = f"/docs/{page.removesuffix('.md')}"
        served[path] = request("GET", f"{home}{path}").body.decode()
    links = {
        (path, link)
        for path, text in served.items()
        for link in re.findall(r'<(?:a href|img[^>]* src)="(/docs/[^"]*|#[^"]*)"', text)
    }
    assert len({link for _, link in links}) > 60
    for path, link in links:
        target, _, part = link.partition("#")
        text = served.get(target or path)
        if text is None:
            reply = request("GET", f"{home}{target}")
            assert reply.status == 200, (path, link)
            text = reply.body.decode(errors="replace")
        assert not part or f'id="{part}"' in text, (path, link)


def test_it_begins_with_an_index_and_has_a_list_for_programs(home: str) -> None:
    index = request("GET", f"{home}/docs/")
    assert b"<h1" in index.body
    assert request("GET", f"{home}/docs/index").body == index.body
    listed = request("GET", f"{home}/llms.txt")
    assert listed.headers["content-type"] == "text/plain; charset=utf-8"
    for page in re.findall(r"\(/docs/([^)]+)\)", listed.body.decode()):
        as_written = request("GET", f"{home}/docs/{page}")
        assert as_written.body == (ROOT / "docs" / page).read_bytes()
        assert as_written.headers["content-type"] == "text/markdown; charset=utf-8"
    style = request("GET", f"{home}/docs/style.css")
    assert style.headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nothing",
        "/docs/..%2fpyproject.toml",
        "/docs/../pyproject.toml",
        "/docs/operations/..%2f..%2fREADME.md",
        "/docs/%2e%2e/README",
        "/docs/operations",
        "/docs/index.md/x",
        "/docs/style.css.md",
    ],
)
def test_what_is_no_page_is_nowhere(home: str, path: str) -> None:
    assert request("GET", f"{home}{path}").status in {400, 404}
