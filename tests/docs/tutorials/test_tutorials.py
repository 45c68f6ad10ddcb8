"""Every block of the tutorials is done as it stands: typed, or written into the file it names."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from carnet.testing.address import Address
from tests.docs.first.masks import masked
from tests.docs.test_quickstart import MARK, ROOT, Block, blocks_of, typed
from tests.engine.schema.test_tools_offline import LocalModel

pytestmark = pytest.mark.timeout(600)  # one of them has a model compute

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
FILE = re.compile(r"# ([\w/]+\.(?:py|toml))\n")
SERVES = re.compile(r"carnet (?:-c (\w+)/carnet\.toml )?serve\n")
MODEL = "carnet model local\n"
PORTS = ("8700", "8701")


def done(block: Block, addresses: Iterator[Address]) -> list[str]:
    """What a person does with a block, as lines of a shell."""
    if block.language in {"python", "toml"}:
        named = FILE.match(block.text)
        assert named, f"which file is this?\n{block.text}"
        return [f"cat >> {named[1]} <<'END'\n\n{block.text[named.end() :]}END"]
    serves = SERVES.fullmatch(block.text)
    if block.text == MODEL:
        return []  # it runs already
    if serves is None:
        return [f"{{\n{block.text}}}"]
    where = f"{serves[1]}/" if serves[1] else ""
    log = "serve.log" if not where else f"{serves[1]}.log"
    return [
        f"{{ {block.text.strip()} --fd {next(addresses).fd} ; }} > {log} 2>&1 &",
        f"until test -e {where}var/gateway.url; do sleep 0.1; done",
    ]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[LocalModel]:
    made = LocalModel(tmp_path)
    yield made
    made.process.kill()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    blocks = [*blocks_of(page), Block("", "")]
    ports = _in_the_order_of_their_servers(blocks)
    left = iter(ports.values())
    lines, wanted = ["set -euo pipefail", f"cd {tmp_path}"], []
    for block, after in pairwise(blocks):
        if block.language in {"sh", "python", "toml"}:
            lines += [*done(block, left), f"echo '{MARK}'"]
            wanted.append(after.text if after.language == "text" else "")
    script = "\n".join(lines)
    for written, address in ports.items():
        script = script.replace(written, str(address.port))
    if any(block.text == MODEL for block in blocks):
        served = request.getfixturevalue("model").wait()
        script = script.replace("http://127.0.0.1:8080/v1", served["url"])
    printed = typed(script, tmp_path, ports.values()).split(MARK)
    assert len(wanted) > 0
    for expected, got in zip(wanted, printed, strict=False):
        if expected:
            assert masked(got, ports) == masked(expected)


def _in_the_order_of_their_servers(blocks: list[Block]) -> dict[str, Address]:
    """An address for each port of a page: by which configuration is served first."""
    text = "".join(block.text for block in blocks)
    folders = [found[1] for block in blocks if (found := SERVES.fullmatch(block.text))]
    written = dict(re.findall(r"carnet init (\w+) --domain \S+ --port (\d+)", text))
    return {written.get(folder, PORTS[0]): Address() for folder in folders}


def test_the_ways_that_people_learn_are_all_there() -> None:
    names = {page.stem for page in PAGES}
    assert names == {"publish", "call", "paid", "approve", "conversation", "engine"}
    index = (ROOT / "docs" / "index.md").read_text()
    assert all(f"(tutorials/{name}.md)" in index for name in names)
