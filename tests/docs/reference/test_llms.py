"""What programs that read are given: every page of the index, and it is there."""

import re

from tests.docs.reference.llms import DOCS, LLMS, llms_text
from tests.docs.test_quickstart import ROOT

FOR_OTHERS = {"decisions"}  # pages that tell what was


def test_the_list_for_programs_is_made_of_the_index() -> None:
    assert LLMS.read_text() == llms_text(), "python -m tests.docs.tables writes it"


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[str] = set()
    left = ["index.md"]
    while left:
        page = left.pop()
        if page in seen:
            continue
        seen.add(page)
        folder = (DOCS / page).parent
        for target in re.findall(r"\]\(([\w/.-]+\.md)(?:#[\w-]+)?\)", (DOCS / page).read_text()):
            path = (folder / target).resolve()
            if path.is_relative_to(DOCS):
                left.append(str(path.relative_to(DOCS)))
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    lost = {page for page in there - seen if page.split("/")[0] not in FOR_OTHERS}
    assert lost == set()


def test_the_page_for_coding_agents_names_what_is_there() -> None:
    text = (ROOT / "AGENTS.md").read_text()
    targets = re.findall(r"`(make \w+)`", text)
    makefile = (ROOT / "Makefile").read_text()
    assert targets
    for target in targets:
        assert re.search(rf"^{target.split()[1]}:", makefile, re.MULTILINE), target
