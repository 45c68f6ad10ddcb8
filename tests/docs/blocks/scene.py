"""What the pages say that a reader has: agents that ask, a partner, files, a receiver."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

AGENTS: Final = '''
clerk = carnet.agent("clerk")


@clerk.skill("book")
async def book(day: str, seats: int = 1) -> dict[str, str]:
    return {"day": day}


@clerk.skill("report", modes=["sync", "async"])
async def report(month: int) -> dict[str, int]:
    return {"month": month}


async def critic(visit):
    return "I doubt it."


async def researcher(visit):
    """Ask the critic."""
    return await visit.peer("critic").ask(visit.text)


async def asks(visit):
    """Ask for leave."""
    answer = await visit.interrupt(approval="May I?")
    return answer.outcome


async def shop(visit):
    """Ask for money."""
    answer = await visit.interrupt(payment="0.5", message="Half a credit.")
    return answer.outcome


async def sizes(visit):
    """Ask for a value."""
    answer = await visit.interrupt(input="Which size?")
    return str(answer.value)


async def writer(visit):
    """Use as many tokens as it is told."""
    visit.usage(tokens_out=int(visit.text))
    return "written"


async def party(visit):
    """Ask two at once, and do without the one who asks for something."""
    answers = await visit.fan_out(["asks", "echo"], visit.text, on_failure="collect")
    return " ".join(answer.text or "none" for answer in answers)
'''
_NAMES: Final = ("assistant", "critic", "researcher", "clerk", "asks", "shop", "sizes", "party")
CONFIG = "".join(
    f'\n[agents.{name}]\nkind = "python"\ntarget = "agents:{function}"\n'
    for name, function in zip(_NAMES, ("echo", *_NAMES[1:]), strict=True)
)
# One that is paid by what it writes: its caller may owe more than a limit lets be spent.
CONFIG += '\n[agents.writer]\nkind = "python"\ntarget = "agents:writer"\nprice_out = "1"\n'
ENGINE: Final = """
[models.small]
url = "http://127.0.0.1:9/v1"

[engine]
listen = "unix:var/engine.sock"
"""
ALLOWED: Final = '\n[egress]\nallow = ["127.0.0.1:{port}"]\n'
PARTNER: Final = """
[agents.clerk]
kind = "python"
target = "agents:clerk"
trust = "public"

[agents.critic]
kind = "python"
target = "agents:critic"
trust = "public"

[agents.booking]
kind = "python"
target = "agents:echo"
trust = "public"
"""
REVIEW: Final = """
import carnet


async def researcher(visit):
    return "It is so."


async def critic(visit):
    return "I doubt it."


panel = carnet.Conversation("panel", [researcher, critic], max_turns=2)
"""
REVIEW_TOML: Final = """
participants = [{{ agent = "{url}/v1", name = "one" }}, {{ agent = "{url}/v1", name = "two" }}]
max_turns = 2
seed = "Is it so?"
"""
EDITOR: Final = f"""#!{sys.executable}
import sys

with open(sys.argv[1], "a") as file:
    file.write("one more line\\n")
"""


def write_executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o700)
    return path


@contextmanager
def gone() -> Iterator[int]:
    """A receiver of webhooks that takes none any more, at a port of its own."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(410)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
