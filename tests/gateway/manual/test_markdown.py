"""Our own pages as HTML: all that they use is there, and nothing of them is a tag."""

import re

import pytest

from carnet.gateway.manual.markdown import anchor, render
from tests.docs.test_quickstart import ROOT


def body(text: str) -> str:
    return render(text, lambda target: f"/docs/{target}" if target.endswith(".md") else None)[1]


def test_what_pages_use_is_rendered() -> None:
    assert body("## A `b`, **c**") == ('<h2 id="a-b-c">A <code>b</code>, <strong>c</strong></h2>')
    assert body("one\ntwo *three*\n\nfour") == "<p>one two <em>three</em></p>\n<p>four</p>"
    assert body("```sh\na < b\n```") == ('<pre tabindex="0"><code class="sh">a &lt; b</code></pre>')
    assert body("- a\n  b\n- c") == "<ul><li>a b</li><li>c</li></ul>"
    assert body("1. a\n2. b") == "<ol><li>a</li><li>b</li></ol>"
    assert body("> a\n> b") == "<blockquote><p>a b</p></blockquote>"
    assert body("<!-- table x -->\na") == "<p>a</p>"


def test_tables_keep_their_cells() -> None:
    page = body("| a | b |\n|---|---|\n| `x \\| y` | one<br>two |")
    assert "<th>a</th><th>b</th>" in page
    assert "<td><code>x | y</code></td><td>one<br>two</td>" in page


def test_a_link_leads_to_a_page_or_is_words() -> None:
    assert body("[a `b`](c.md)") == '<p><a href="/docs/c.md">a <code>b</code></a></p>'
    assert body("[a](../src/x.py)") == "<p>a</p>"
    assert body("![a](b.md)") == '<p><img src="/docs/b.md" alt="a"></p>'


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "`<b>`",
        '[x](a.md"onload=1)',
        "# <img src=x onerror=1>",
        "| <i> | b |\n|---|---|\n| <u> | \0 |",
        "**<b>**",
        "[<b>](c.md)",
    ],
)
def test_no_text_becomes_a_tag_of_its_own(text: str) -> None:
    shown = "".join(render(text, lambda target: f"/docs/{target}"))
    ours = r"</?(?:p|h[1-4]|code|a|strong|em|table|thead|tbody|tr|th|td|div|br|img)\b[^<>]*>"
    assert "<" not in re.sub(ours, "", shown)
    assert not re.search(r"<[^>]*\son\w+=", shown.replace("&quot;", ""))


def test_every_page_has_the_places_that_links_name() -> None:
    """A link to a place in a page finds a heading there."""
    folder = ROOT / "docs"
    places = {
        page.resolve(): {
            anchor(each) for each in re.findall(r"^#{1,4} (.+)$", page.read_text(), re.MULTILINE)
        }
        for page in folder.rglob("*.md")
    }
    lost = []
    for page in places:
        for target, place in re.findall(r"\]\(([\w/.-]*)#([\w-]+)\)", page.read_text()):
            where = (page.parent / target).resolve() if target else page
            if where in places and place not in places[where]:
                lost.append((page.name, target, place))
    assert lost == []
