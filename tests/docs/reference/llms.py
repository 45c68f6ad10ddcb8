"""`llms.txt`: the documentation as a list for programs that read, made of its index."""

import re
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[3] / "docs"
LLMS: Final = DOCS / "llms.txt"
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([\w/.-]+\.md)\)")


def llms_text() -> str:
    """The title, what it is, and each page of the index with its first sentence."""
    index = (DOCS / "index.md").read_text()
    _, summary, rest = index.split("\n\n", 2)
    lines = ["# Carnet", "", f"> {' '.join(summary.split())}", ""]
    for section in rest.split("## ")[1:]:
        title = section.splitlines()[0]
        links = dict(_LINK.findall(section.replace("`", "")))
        lines += [f"## {title}", "", *[_line(name, page) for name, page in links.items()], ""]
    return "\n".join(lines)


def _line(name: str, page: str) -> str:
    return f"- [{name}](/docs/{page}): {first_sentence(DOCS / page)}"


def first_sentence(page: Path) -> str:
    """What a page says first, after its title."""
    paragraphs = page.read_text().split("\n\n")
    text = next(
        each
        for each in paragraphs[1:]
        if (each[0].isalpha() or each[0] in "`*[") and not each.startswith("```")
    )
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.split(r"(?<=[.?])\s", plain)[0]
