"""What the README tells a newcomer to type is typed here in a checkout, and printed as it says."""

import shutil
import sys
from pathlib import Path

from carnet.testing.address import Address
from tests.docs.first.masks import masked
from tests.docs.test_quickstart import MARK, ROOT, blocks_of, steps_of, typed
from tests.stores.support import servers

README = ROOT / "README.md"
MADE_BY_MAKE = ("make test",)  # every check, this one too
POSTGRES = "postgresql://carnet@db.example/carnet"
NOBODY = "https://gw.globex.example"  # a test calls nobody outside: a port where nobody listens


def checkout(folder: Path) -> Path:
    """A checkout in which `make setup` was typed: what `make serve` looks at is there."""
    tree = folder / "carnet"
    tree.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "requirements", tree / "requirements")
    programs = tree / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("carnet", "python"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    for stamp in (".made", ".base", ".self"):  # in the order in which make makes them
        (tree / ".venv" / stamp).touch()
    return tree


def served(address: Address) -> list[str]:
    """`make serve` in a terminal of its own, until it is up."""
    return [
        "rm -f shown.txt",
        f'make serve ARGS="--fd {address.fd}" > serve.log 2> shown.txt &',
        """until grep -qs '"hello"}]}' shown.txt; do sleep 0.1; done""",
    ]


def stopped() -> list[str]:
    """What Ctrl-C does to it."""
    return ["kill $! && wait $! || true", "while test -e var/gateway.url; do sleep 0.1; done"]


def written_agent() -> list[str]:
    """What a person does with the agent of the page: into agents.py, and into carnet.toml."""
    texts = {block.language: block.text for block in blocks_of(README)}
    return [
        f"cat >> agents.py <<'END'\n{texts['python']}END",
        f"cat >> carnet.toml <<'END'\n\n{texts['toml']}END",
    ]


def test_every_command_of_the_readme_prints_what_it_says(
    tmp_path: Path, server: servers.Server
) -> None:
    first, *steps = steps_of(README)
    assert [line.split("#")[0].strip() for line in first.commands.splitlines()] == [
        "make serve",
        *MADE_BY_MAKE,
    ]
    address, nobody = Address(), Address()
    lines = ["set -euo pipefail", f"cd {checkout(tmp_path)}", *served(address)]
    lines += ["cat shown.txt", f"echo '{MARK}'"]
    lines += ["sed '1,/^Try it:/d' shown.txt > pasted.sh", ". ./pasted.sh", f"echo '{MARK}'"]
    for step in steps:
        if "researcher" in step.commands:
            lines += [*stopped(), *written_agent(), *served(address)]
        if POSTGRES in step.commands:  # which wants an empty database, and nobody who serves
            lines += stopped()
        lines += [f"{{\n{step.commands}}}", f"echo '{MARK}'"]
    script = "\n".join(lines).replace("8700", str(address.port)).replace(NOBODY, nobody.url)
    script = script.replace(POSTGRES, server.create())
    printed = typed(script, tmp_path, [address])
    printed = printed.replace(nobody.url, NOBODY).replace(str(tmp_path), "/path/to")
    banner, answer, *others = [masked(each, {"8700": address}) for each in printed.split(MARK)]
    texts = [block.text for block in blocks_of(README) if block.language == "text"]
    assert banner == masked(first.printed)
    assert answer == masked(texts[1])
    assert sum(bool(step.printed) for step in steps) == len(texts) - 2 == 5
    for step, got in zip(steps, others, strict=False):
        if step.printed:
            assert got == masked(step.printed), step.commands
