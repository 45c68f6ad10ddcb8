"""`carnet memory`: what agents keep for you, to read, edit, undo, export and delete."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from carnet.cli.invocation import Group, Invocation, count, pass_invocation, table, visible, wait
from carnet.errors import UsageInvalid

_AS = click.option(
    "--as", "token", metavar="TOKEN", help="The token of the person it belongs to, or @FILE."
)
_AGENT = click.argument("agent", metavar="AGENT")
_PATH = click.argument("path", metavar="PATH")


@click.group(cls=Group)
def memory() -> None:
    """Read, edit, undo, export and delete what agents keep for you.

    It belongs to a person. Whose it is is told by the token: yours with --as or CARNET_TOKEN,
    else the one that 'carnet init' has made.
    """


@memory.command("list")
@click.argument("agent", metavar="[AGENT]", required=False)
@click.option("--search", metavar="WORDS", help="The lines that hold all of these words.")
@_AS
@pass_invocation
def list_files(
    invocation: Invocation, agent: str | None, search: str | None, token: str | None
) -> None:
    """List the agents that keep something for you, or the files of one."""
    if agent is None:
        if search is not None:
            raise UsageInvalid(
                reason="--search looks through the memory of one agent.", fix="Name the agent."
            )
        page = wait(_ask(invocation, token, "GET", "/memory"))
        invocation.result(page, lambda: invocation.spell(_folders(page)), page["memory"])
        return
    query = "" if search is None else "?" + urlencode({"search": search})
    page = wait(_ask(invocation, token, "GET", _place(agent) + query))
    rows = page["files"] if search is None else page["hits"]
    invocation.result(page, lambda: _files(rows) if search is None else _hits(rows), rows)


def _folders(page: dict[str, Any]) -> str:
    if not page["memory"]:
        return "No agent keeps anything for you. What one begins with: carnet memory list AGENT"
    rows = [[one["agent"], str(one["files"]), str(one["bytes"])] for one in page["memory"]]
    return table(rows, ["AGENT", "FILES", "BYTES"])


def _files(files: list[dict[str, Any]]) -> str:
    from carnet.cli.times import short

    rows = [
        [
            *(file["path"], str(file["version"]), str(file["bytes"])),
            short(file["written"]) if file["written"] else "as it begins",
        ]
        for file in files
    ]
    return table(rows, ["PATH", "VERSION", "BYTES", "WRITTEN"])


def _hits(hits: list[dict[str, Any]]) -> str:
    lines = [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in hits]
    return visible("\n".join(lines)) if lines else "No line holds all of these words."


@memory.command()
@_AGENT
@_PATH
@click.option("--version", type=click.IntRange(0), metavar="N", help="As it was in this version.")
@_AS
@pass_invocation
def show(
    invocation: Invocation, agent: str, path: str, version: int | None, token: str | None
) -> None:
    """Show a file, as it is or as it was."""
    query = "" if version is None else f"?version={version}"
    page = wait(_ask(invocation, token, "GET", _place(agent, path) + query))
    invocation.result(page, lambda: visible(page["content"].removesuffix("\n")))


@memory.command()
@_AGENT
@_PATH
@click.option("--file", type=click.Path(), metavar="FILE", help="The new text; - reads it here.")
@_AS
@pass_invocation
def edit(
    invocation: Invocation, agent: str, path: str, file: str | None, token: str | None
) -> None:
    """Write a file: in your editor ($VISUAL or $EDITOR), or as a file or the input says.

    What it said is kept, and can be brought back: carnet memory undo.
    """
    page = wait(_edit(invocation, agent, path, file, token))
    text = "Nothing was changed." if page is None else _written(page)
    invocation.result(page or {"changed": False}, lambda: text)


async def _edit(
    invocation: Invocation, agent: str, path: str, file: str | None, token: str | None
) -> dict[str, Any] | None:
    from carnet.cli.failures import GatewayError
    from carnet.cli.reach.requests import asking, owner_token
    from carnet.errors import MemoryFileNotFound

    place = _place(agent, path)
    async with asking(invocation, owner_token(invocation, token)) as ask:
        if file is not None:
            return await ask("PUT", place, {"content": _read(file)})
        try:
            before = await ask("GET", place)
        except GatewayError as error:
            if error.facts.get("code") != MemoryFileNotFound.code:
                raise
            before = {"content": "", "version": 0}
        content = click.edit(before["content"], extension=Path(path).suffix or ".txt")
        if content is None or content == before["content"]:
            return None
        return await ask("PUT", place, {"content": content, "version": before["version"]})


def _read(file: str) -> str:
    try:
        with click.open_file(file, encoding="utf-8") as source:
            return str(source.read())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageInvalid(
            reason=f"{file} cannot be read as text ({error}).", fix="Name a file of UTF-8 text."
        ) from None


def _written(page: dict[str, Any]) -> str:
    return f"{page['path']} is version {page['version']}, {count(page['bytes'], 'byte')}."


@memory.command()
@_AGENT
@_PATH
@click.option("--to", type=click.IntRange(1), metavar="N", help="Bring back this version.")
@_AS
@pass_invocation
def undo(invocation: Invocation, agent: str, path: str, to: int | None, token: str | None) -> None:
    """Bring back what a file said before, or in some version; again goes back further."""
    query = "" if to is None else f"?version={to}"
    page = wait(_ask(invocation, token, "POST", f"{_place(agent, path)}/undo{query}"))
    invocation.result(page, lambda: _written(page))


@memory.command()
@_AGENT
@_PATH
@_AS
@pass_invocation
def history(invocation: Invocation, agent: str, path: str, token: str | None) -> None:
    """Show the versions of a file: when, by whom, in which conversation and run."""
    page = wait(_ask(invocation, token, "GET", f"{_place(agent, path)}/versions"))
    invocation.result(page, lambda: _history(page), page["versions"])


def _history(page: dict[str, Any]) -> str:
    from carnet.cli.times import short

    rows = [
        [
            *(str(one["version"]), "erased" if one["erased"] else str(one["bytes"])),
            *(short(one["written"]), one["by"], str(one["brings_back"] or "-")),
            *(one["conversation"] or "-", one["run"] or "-"),
        ]
        for one in page["versions"]
    ]
    titles = ["VERSION", "BYTES", "WRITTEN", "BY", "BRINGS BACK", "CONVERSATION", "RUN"]
    return table(rows, titles)


@memory.command()
@_AGENT
@click.option("--to", type=click.Path(), metavar="FOLDER", help="Write the files into a folder.")
@_AS
@pass_invocation
def export(invocation: Invocation, agent: str, to: str | None, token: str | None) -> None:
    """Take along all files of an agent: as JSON, or into a folder that is not there yet."""
    page = wait(_ask(invocation, token, "GET", f"{_place(agent)}?full=true"))
    if to is None:
        from carnet.cli.invocation import to_json

        invocation.result(page, lambda: to_json(page, indent=2), page["files"])
        return
    files = _export(Path(to), page["files"])
    text = f"{count(files, 'file')} in {to}."
    invocation.result({"agent": agent, "folder": to, "files": files}, lambda: text)


def _export(folder: Path, files: list[dict[str, Any]]) -> int:
    """Write files below a folder that is made for it; their paths are read as strictly as ever."""
    from carnet.core.memory.path import parse_path

    try:
        folder.mkdir(mode=0o700, parents=True)
        for file in files:
            place = folder / parse_path(file["path"])
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8", newline="") as target:
                target.write(file["content"])
    except OSError as error:
        raise UsageInvalid(
            reason=f"{folder} cannot be written ({error.strerror}).",
            fix="Name a folder that is not there yet.",
        ) from None
    return len(files)


@memory.command()
@_AGENT
@click.argument("path", metavar="[PATH]", required=False)
@click.option("--version", type=click.IntRange(1), metavar="N", help="Only this version of it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_AS
@pass_invocation
def delete(
    invocation: Invocation,
    agent: str,
    path: str | None,
    version: int | None,
    yes: bool,  # noqa: FBT001  click passes it
    token: str | None,
) -> None:
    """Delete a file with all its versions, one version, or all that an agent keeps for you."""
    if version is not None and path is None:
        raise UsageInvalid(reason="--version is one of a file.", fix="Name the file.")
    what = f"all that {agent} keeps for you" if path is None else path
    if not yes:
        click.confirm(f"Delete {what}? Nothing of it is kept.", abort=True, err=True)
    query = "" if version is None else f"?version={version}"
    page = wait(_ask(invocation, token, "DELETE", _place(agent, path) + query))
    invocation.result(page, lambda: f"Deleted: {count(page['deleted'], 'version')}.")


def _place(agent: str, path: str | None = None) -> str:
    place = f"/memory/{quote(agent, safe='')}"
    return place if path is None else f"{place}/{quote(path, safe='')}"


async def _ask(invocation: Invocation, token: str | None, method: str, path: str) -> dict[str, Any]:
    from carnet.cli.reach.requests import ask_as_owner

    return await ask_as_owner(invocation, token, method, path)
