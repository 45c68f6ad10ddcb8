"""What can be typed in a chat beside what is said: `/help`, `/history`, `/open ID` and so on."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from carnet.cli.chat import history
from carnet.cli.chat.connection import conversation_path
from carnet.cli.chat.exchange import REGENERATE, RETRY, again, last_answer
from carnet.cli.chat.session import ChatSession, Leave
from carnet.cli.failures import OK, error_object
from carnet.cli.invocation import table
from carnet.errors import UsageInvalid

NOTHING_YET: Final = "Nothing was said yet."

Run = Callable[[ChatSession, str], None]


def help_(session: ChatSession, _: str) -> None:
    """List the commands."""
    rows = [[usage, str(run.__doc__).partition("\n")[0]] for usage, run in COMMANDS.values()]
    session.screen.print(table(rows, ["", ""]).strip("\n"))
    session.screen.print(
        "@name before what you say asks another agent; // says something that begins with a slash;"
        "\na backslash at the end of a line goes on in the next one. Ctrl-C stops an answer."
    )


def agents(session: ChatSession, _: str) -> None:
    """List the agents that you may ask."""
    page = session.attempt(session.connection.ask("GET", "/v1/models"))
    if page is not None:
        session.screen.print("\n".join(str(each["id"]) for each in page["data"]))


def new(session: ChatSession, agent: str) -> None:
    """Begin a new conversation, with AGENT if it is given."""
    session.begin(agent or None)
    session.screen.note("A new conversation begins.")


def list_(session: ChatSession, words: str) -> None:
    """List earlier conversations; with WORDS those that hold them."""
    page = session.attempt(history.list_page(session.connection, words))
    if page is not None:
        session.listed = [each["id"] for each in page["conversations"]]
        session.screen.print(history.list_text(page))


def open_(session: ChatSession, id: str) -> None:
    """Open one: by its number in the list, its id, or the beginning of that."""
    if not id:
        raise UsageInvalid(reason="Which one?", fix="/history lists them.")
    if id.isdecimal() and not id.startswith("0") and int(id) <= len(session.listed):
        id = session.listed[int(id) - 1]
    page = session.attempt(history.open_page(session.connection, id))
    if page is not None:
        session.open(page)


def retry(session: ChatSession, _: str) -> None:
    """Have the last answer tried again, if it is not whole."""
    if not session.hear_again():
        session.hear(again(_current(session), RETRY))


def regenerate(session: ChatSession, _: str) -> None:
    """Have another answer given, beside the last one."""
    session.hear(again(_current(session), REGENERATE))


def edit(session: ChatSession, rest: str) -> None:
    """Say TEXT in the place of what you said before; N is 1 for the last. Alone it lists them."""
    page = session.attempt(history.own_page(session.connection, _current(session)))
    if page is None:
        return
    own = [each for each in page["messages"] if each["role"] == "user"]
    number, _, text = rest.partition(" ")
    if not rest:
        session.screen.print(history.own_text(own))
        return
    if not number.isdecimal() or not 1 <= int(number) <= len(own):
        raise UsageInvalid(reason=f"'{number}' is none of them.", fix="/edit lists them.")
    if not text.strip():
        raise UsageInvalid(reason="What is to be said there?", fix=f"/edit {number} TEXT")
    session.say(text.strip(), edits=own[int(number) - 1]["id"])


def stop(session: ChatSession, _: str) -> None:
    """Stop an answer that is being given elsewhere; here, Ctrl-C does."""
    path = conversation_path(_current(session), "/stop")
    page = session.attempt(session.connection.ask("POST", path))
    if page is not None:
        session.screen.note("(stopped)" if page["stopped"] else "No answer is being given.")


def answer(session: ChatSession, _: str) -> None:
    """Be asked again what the last answer waits for."""
    page = session.attempt(history.open_page(session.connection, _current(session)))
    last = last_answer(page) if page is not None else []
    if last and last[0]["waits"]:
        session.answer_open(last[0])
    elif page is not None:
        session.screen.note("Nothing waits for you here.")


def export(session: ChatSession, file: str) -> None:
    """Print this conversation, or write it to a new FILE (.md or .json)."""
    form = "json" if file.endswith(".json") else "markdown"
    path = conversation_path(_current(session), f"/export?format={form}")
    data = session.attempt(session.connection.read(path))
    if data is None:
        return
    if not file:
        session.screen.print(data.decode(errors="replace").rstrip("\n"))
        return
    place = Path(file).expanduser()
    try:
        with place.open("xb") as out:
            place.chmod(0o600)
            out.write(data)
    except OSError as error:
        raise UsageInvalid(
            reason=f"{place} cannot be written ({error.strerror}).", fix="Name a new file."
        ) from None
    session.screen.note(f"Written to {place}.")


def rename(session: ChatSession, title: str) -> None:
    """Give this conversation the name TITLE."""
    path = conversation_path(_current(session))
    page = session.attempt(session.connection.ask("PATCH", path, {"title": title}))
    if page is not None:
        session.screen.note(f"It is called: {page['title']}")


def delete(session: ChatSession, _: str) -> None:
    """Delete this conversation, with all that was said in it."""
    id = _current(session)
    try:
        typed = session.prompt.line("Delete it, for good? Type yes: ")
    except KeyboardInterrupt:
        typed = ""
    if (typed or "").strip() != "yes":
        session.screen.note("Nothing was deleted.")
    elif session.attempt(session.connection.ask("DELETE", conversation_path(id))) is not None:
        session.begin(None)
        session.screen.note("Deleted. A new conversation begins.")


def leave(_: ChatSession, __: str) -> None:
    """Leave (or Ctrl-D); the conversation is kept."""
    raise Leave


COMMANDS: Final[dict[str, tuple[str, Run]]] = {
    "/help": ("/help", help_),
    "/agents": ("/agents", agents),
    "/new": ("/new [AGENT]", new),
    "/history": ("/history [WORDS]", list_),
    "/open": ("/open ID", open_),
    "/answer": ("/answer", answer),
    "/retry": ("/retry", retry),
    "/regenerate": ("/regenerate", regenerate),
    "/edit": ("/edit [N TEXT]", edit),
    "/stop": ("/stop", stop),
    "/export": ("/export [FILE]", export),
    "/rename": ("/rename TITLE", rename),
    "/delete": ("/delete", delete),
    "/quit": ("/quit", leave),
}


def _unknown(_: ChatSession, __: str) -> None:
    raise UsageInvalid(reason="There is no such command.", fix="/help lists them.")


_UNKNOWN: Final = ("", _unknown)


def _current(session: ChatSession) -> str:
    if session.conversation is None:
        raise UsageInvalid(reason=NOTHING_YET, fix="Say something, or open a conversation.")
    return session.conversation


def converse(session: ChatSession) -> int:
    """Take what is typed until she leaves; the exit code."""
    try:
        while (typed := session.read()) is not None:
            take(session, typed)
    except Leave as left:
        return left.code
    finally:
        if session.conversation is not None:
            session.screen.note(f"Come back with: carnet chat --resume {session.conversation}")
    return OK


def take(session: ChatSession, typed: str) -> None:
    """Do what a line says: a command, or something to be said."""
    if typed.startswith("/") and not typed.startswith("//"):
        name, _, rest = typed.strip().partition(" ")
        try:
            COMMANDS.get(name, _UNKNOWN)[1](session, rest.strip())
        except UsageInvalid as error:
            session.screen.failure(error_object(error))
    elif typed.strip():
        session.say(typed.removeprefix("/") if typed.startswith("//") else typed)
