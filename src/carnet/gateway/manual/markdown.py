"""Markdown as our own pages use it, to HTML.

Headings, paragraphs, fenced blocks, tables, lists, quotes; code, bold, italics and links in a line.
It is for pages that come with the package, and for nothing that anybody sends.

Law 1. Pure. Every character of a page is escaped; the only tags are ours, `<br>` in a table too.
Law 2. A link leads to another page of ours, to a place in one, or to where it says by https. One
       that leads out of the documentation, into the source, is shown as words.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_FENCE: Final = re.compile(r"```(\w*)")
_HEADING: Final = re.compile(r"(#{1,4}) (.+)")
_ITEM: Final = re.compile(r"( *)(?:[-*]|(\d+)\.) (.*)")
_CODE: Final = re.compile(r"(`+)(.+?)\1")
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_BOLD: Final = re.compile(r"\*\*(.+?)\*\*")
_ITALIC: Final = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)")
_KEPT: Final = re.compile("\0(\\d+)\0")

Resolve = Callable[[str], str | None]  # a target as a page writes it, to an address; None: nowhere


def render(text: str, resolve: Resolve) -> tuple[str, str]:
    """The title and the body of a page."""
    blocks = list(_blocks(text.replace("\0", "").splitlines(), resolve))
    found = _HEADING.search(text)
    return (html.escape(_plain(found[2])) if found else "Carnet"), "\n".join(blocks)


def anchor(heading: str) -> str:
    """The place of a heading, as links name it."""
    words = re.sub(r"[^\w\- ]", "", _plain(heading).lower())
    return words.replace(" ", "-")


def _plain(text: str) -> str:
    return _LINK.sub(r"\2", text).replace("`", "").replace("**", "")


def _blocks(lines: Sequence[str], resolve: Resolve) -> Iterator[str]:
    place = 0
    while place < len(lines):
        line = lines[place]
        fence, heading = _FENCE.match(line), _HEADING.fullmatch(line)
        end = place + 1
        if fence:
            end = _after(lines, end, lambda each: not each.startswith("```")) + 1
            code = html.escape("\n".join(lines[place + 1 : end - 1]))
            yield f'<pre tabindex="0"><code class="{fence[1] or "text"}">{code}</code></pre>'
        elif heading:
            level = len(heading[1])
            name = html.escape(anchor(heading[2]), quote=True)
            yield f'<h{level} id="{name}">{_inline(heading[2], resolve)}</h{level}>'
        elif line.startswith("|"):
            end = _after(lines, place, lambda each: each.startswith("|"))
            yield _table(lines[place:end], resolve)
        elif _ITEM.fullmatch(line):
            end = _after(lines, place, lambda each: bool(each.strip()))
            yield _list(lines[place:end], resolve)
        elif line.startswith(">"):
            end = _after(lines, place, lambda each: each.startswith(">"))
            words = " ".join(each.lstrip("> ") for each in lines[place:end])
            yield f"<blockquote><p>{_inline(words, resolve)}</p></blockquote>"
        elif line.strip() and not line.startswith("<!--"):
            end = _after(lines, place, _is_text)
            yield f"<p>{_inline(' '.join(lines[place:end]), resolve)}</p>"
        place = end


def _is_text(line: str) -> bool:
    begins = ("```", "|", "#", ">", "<!--")
    return bool(line.strip()) and not line.startswith(begins) and not _ITEM.fullmatch(line)


def _after(lines: Sequence[str], place: int, holds: Callable[[str], bool]) -> int:
    """The first place from here on that it does not hold for."""
    while place < len(lines) and holds(lines[place]):
        place += 1
    return place


def _table(lines: Sequence[str], resolve: Resolve) -> str:
    head, _, *rows = [_cells(line) for line in lines]
    parts = ['<div class="wide" tabindex="0"><table>', "<thead>", _row(head, "th", resolve)]
    parts += ["</thead>", "<tbody>", *[_row(row, "td", resolve) for row in rows]]
    return "".join([*parts, "</tbody></table></div>"])


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _row(cells: Sequence[str], tag: str, resolve: Resolve) -> str:
    inner = [f"<{tag}>{_inline(cell, resolve)}</{tag}>" for cell in cells]
    return f"<tr>{''.join(inner)}</tr>"


def _list(lines: Sequence[str], resolve: Resolve) -> str:
    """A list of one level; lines below an item that begin none go on with it."""
    items: list[str] = []
    for line in lines:
        found = _ITEM.fullmatch(line)
        if found:
            items.append(found[3])
        else:
            items[-1] += f" {line.strip()}"
    first = _ITEM.fullmatch(lines[0])
    tag = "ol" if first is not None and first[2] else "ul"
    inner = "".join(f"<li>{_inline(item, resolve)}</li>" for item in items)
    return f"<{tag}>{inner}</{tag}>"


def _inline(text: str, resolve: Resolve) -> str:
    """A line of text; code and links are put aside, so that nothing in them is taken for more."""
    kept: list[str] = []

    def keep(written: str) -> str:
        kept.append(written)
        return f"\0{len(kept) - 1}\0"

    def code(found: re.Match[str]) -> str:
        return keep(f"<code>{html.escape(found[2])}</code>")

    def link(found: re.Match[str]) -> str:
        return keep(_link(found, resolve, kept))

    text = _LINK.sub(link, _CODE.sub(code, text))
    text = html.escape(text, quote=False).replace("&lt;br&gt;", "<br>")
    text = _ITALIC.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", text))
    return _restored(text, kept)


def _restored(text: str, kept: Sequence[str]) -> str:
    while _KEPT.search(text):
        text = _KEPT.sub(lambda found: kept[int(found[1])], text)
    return text


def _link(found: re.Match[str], resolve: Resolve, kept: Sequence[str]) -> str:
    words = _restored(html.escape(found[2], quote=False), kept)
    where = resolve(found[3])
    if where is None:
        return words
    address = html.escape(where, quote=True)
    if found[1]:
        return f'<img src="{address}" alt="{html.escape(found[2], quote=True)}">'
    return f'<a href="{address}">{words}</a>'
