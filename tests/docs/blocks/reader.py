"""A reader of a page: somebody with a gateway, a partner and a terminal, who types its lines.

A name of a page that stands for something a reader has (`ID`, `FILE`, `globex.example`) is replaced
by one that is made for the line, and nothing else of it is changed.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from carnet.cli.demo.processes import held_port
from carnet.cli.main import run
from carnet.testing.address import Address
from carnet.testing.stage import Organisation, environment
from carnet.testing.wait import until
from tests.docs import curl
from tests.docs.blocks import scene
from tests.docs.first.terminal import Terminal
from tests.docs.test_quickstart import ROOT
from tests.interop.a2a_client.scene import serving as sdk_agent
from tests.stores.support import servers
from tests.support.http import request
from tests.support.model import Model
from tests.testing.conform.test_kit import TOKEN as LOOP_TOKEN
from tests.testing.conform.test_kit import serving as loop_of_others

KEY: Final = "bOxuFFacaCBroZ57qrSiPzQjaxMItz/kDALs1HYgX1Y="
NOBODY_SERVES: Final = re.compile(r"^carnet (migrate|restore)\b")
SERVES: Final = re.compile(r"\bcarnet (-c \S+ )?serve\b")
CHATS: Final = re.compile(r"^carnet chat\b(?!.*--(once|history))")
# Commands that run until they are stopped, and what they say when they are there.
LASTING: Final = {
    SERVES: re.compile(r"Carnet serves "),
    re.compile(r"^carnet engine\b"): re.compile(r"The engine listens at "),
    re.compile(r"^carnet model local\b"): re.compile(r"http://127\.0\.0\.1:\d+/v1"),
    re.compile(r"^carnet demo *(#|$)"): re.compile(r"Ctrl-C ends the demo\."),
    re.compile(r"^carnet conform --front\b"): re.compile(r"http://127\.0\.0\.1:\d+"),
}
STAYS: Final = re.compile(r"# in (one terminal|another)$")  # while the lines below are typed
CONFIRMED: Final = re.compile(r"^carnet (memory delete|run replay .*--swap)\b")
SPEAK: Final = re.compile(r"you> ")
YES_OR_NO: Final = re.compile(r"\[y/N\]")
SHELL: Final = re.compile(r"<<'\w+'|^kill |^\S*pip |^export ")


class Reader:
    """Types the lines of one page, in its order."""

    def __init__(self, home: Organisation, server: Callable[[], servers.Server]) -> None:
        self.home = home
        self._server = server
        self._stack = contextlib.ExitStack()
        self._printed = ""  # by the last command
        self._client = ""  # who was refused
        self._limit = 0  # of who may not pay all that she uses
        self._address = Address()  # of what the page itself starts beside the gateway
        self._stack.callback(self._address.close)

    def close(self) -> None:
        self._stack.close()

    # -- what there is

    def prepare(self, lines: list[str]) -> None:
        """What a reader of the page has already: somebody called, and Alice is known."""
        self.home.new_token("ci")
        has_partner = any("globex" in line or "initech" in line for line in lines)
        if not has_partner or any(line.startswith("carnet peers add globex") for line in lines):
            self.quietly("peers", "add", "globex.example", "--url", "https://gw.globex.example")
        else:
            assert self.partner.url
            until(lambda: self._in_process("carnet call @booking@globex.example hello")[0] == 0)
        assert self.home.ask("researcher", "hello") == "I doubt it."  # the last run
        if "alice" in str(lines) and "people add alice" not in str(lines):
            self.quietly("people", "add", "alice", "--role", "operator")
            scopes = ("memory:read", "memory:write", "run:read", "pay", "call:*")
            options = [word for scope in scopes for word in ("--scope", scope)]
            token = self.home.new_token("phone", "--person", "alice", *options)
            (self.home.folder / "alice.token").write_text(token)
        for name in ("/AGENT.md", "/finances/AGENT.md") if "@alice" in str(lines) else ():
            for _ in range(2):
                words = ("memory", "edit", "assistant", name, "--as", "@alice.token")
                self.quietly(*words)
        (self.home.folder / "review.py").write_text(scene.REVIEW)
        if "review.toml" in str(lines):
            model = self._stack.enter_context(Model().serving())
            page = scene.REVIEW_TOML.format(url=model.url)
            (self.home.folder / "review.toml").write_text(page)
        if "examples/offline" in str(lines):
            offline = self.home.folder / "examples" / "offline"
            shutil.copytree(ROOT / "examples" / "offline", offline)
            config = (offline / "carnet.toml").read_text().replace("8080", str(self.port))
            (offline / "carnet.toml").write_text(config)

    @cached_property
    def partner(self) -> Organisation:
        """Another organisation; each has written the other down."""
        folder = self.home.folder / "partner"
        folder.mkdir()
        made = Organisation(folder, "globex.example")
        self._stack.callback(made.close)
        agents = (folder / "agents.py").read_text() + scene.AGENTS
        made.configure(scene.PARTNER + scene.ALLOWED.format(port=self.home.port), agents=agents)
        made.carnet("peers", "add", self.home.domain, "--url", self.home.url, "--credit", "10")
        made.start()
        self.quietly("peers", "add", "globex.example", "--url", made.url)
        return made

    @cached_property
    def port(self) -> int:
        """One for what the page starts beside its gateway, in the place of the page's."""
        return self._stack.enter_context(held_port())

    @cached_property
    def travel(self) -> str:
        """An agent that speaks A2A, of another package."""
        folder = self.home.folder / "travel"
        folder.mkdir()
        return f"{self._stack.enter_context(sdk_agent(folder)).url}/rpc"

    @cached_property
    def loop(self) -> str:
        """An agent loop of somebody; its token is in a file."""
        (self.home.folder / "loop.token").write_text(LOOP_TOKEN)
        return self._stack.enter_context(loop_of_others())

    def quietly(self, *words: str) -> Any:
        """A command of ours; what it prints, read as JSON where it is."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert run(["--format", "json", *words]) == 0, words
        text = out.getvalue()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def question(self, agent: str) -> str:
        """Something that is asked of whoever types here; its id."""
        with contextlib.redirect_stdout(io.StringIO()):
            assert run(["call", agent, "please"]) == 1
        return str(self.quietly("inbox")["approvals"][0]["id"])

    def task(self, text: str) -> str:
        """A task: one that waits, to be cancelled; its id."""
        words = ["asks", "please"] if "cancel" in text else ["clerk", "skill=report", "month:=11"]
        words += ["--as", "@var/starter.token"] if text.startswith("curl") else []
        return str(self.quietly("call", *words, "--task", "--no-wait")["taskId"])

    def dead_delivery(self) -> str:
        """A webhook that its receiver did not take; its id."""
        with scene.gone() as port:
            self.allow(port)
            url = f"http://127.0.0.1:{port}/in"
            self.quietly("call", "echo", "hello", "--task", "--callback", url)
            listed = until(lambda: self.quietly("outbox", "list", "--state", "dead")["deliveries"])
        return str(listed[0]["delivery"])

    def allow(self, port: int) -> None:
        """Let the gateway send webhooks to a port of this machine."""
        file = self.home.folder / "carnet.toml"
        text = file.read_text().partition("\n[egress]")[0]
        file.write_text(text + scene.ALLOWED.format(port=port))
        self.home.stop()
        self.home.start()

    # -- typing

    def type(self, line: str) -> tuple[int, str]:
        """Type a line: its exit code, and what it printed."""
        self._stand(line)
        text = self.named(line)
        for pattern, sign in LASTING.items():
            if pattern.search(line):
                return self._last(text, sign)
        if CHATS.search(line):
            return self._chat(text)
        if CONFIRMED.search(line):
            return self._confirmed(text)
        if SHELL.search(line):
            return self._shell(text)
        return self._in_process(text)

    def _stand(self, line: str) -> None:
        """Have all stand as the line wants it."""
        if NOBODY_SERVES.search(line) or (SERVES.search(line) and "-c " not in line):
            self.home.stop()
        elif self.home.process is None:
            self.home.start()
        if line.startswith("carnet keys rotate"):
            self._end_rotation()
        if "revoke-key" in line:
            self.quietly("peers", "add", "agent://globex.example", "--key", KEY, "--kid", "k2")
        if line.startswith("carnet engine"):
            self.home.configure(scene.ENGINE)
        if line.startswith("carnet ledger settle"):
            self._owe("alice")

    def _end_rotation(self) -> None:
        """The line is another form of the one above it, which has begun one."""
        for key in self.quietly("keys", "list")["keys"]:
            if key["state"] == "next":
                self.quietly("keys", "revoke", key["kid"])

    def _owe(self, name: str) -> None:
        """Have somebody use three credits more than a limit of hers, if she owes nothing."""
        if f"token:{name}" in self.quietly("ledger", "differences")["unpaid"]:
            return
        if self._limit:
            self.quietly("tokens", "revoke", name)
        self._limit += 2
        token = self.home.new_token(name, "--limit", str(self._limit))
        self.home.ask("writer", "5000000", token=token)

    def _last(self, text: str, sign: "re.Pattern[str]") -> tuple[int, str]:
        """Start what lasts, wait until it is there, and press Ctrl-C where it is not used below."""
        command, _, _ = text.partition(" #")
        with contextlib.ExitStack() as stack:
            terminal = stack.enter_context(self._terminal())
            terminal.begin(f"{command} {self._options(command)}")
            printed = terminal.until(sign)
            if STAYS.search(text):
                self._stack.push(stack.pop_all())
            else:
                terminal.interrupt()
        return 0, printed

    def _options(self, command: str) -> str:
        """A port of our own in the place of the page's, which may be taken here."""
        if SERVES.search(command):
            return f"--fd {self._address.fd}"
        return f"--port {self.port}" if "model local" in command else ""

    def _chat(self, text: str) -> tuple[int, str]:
        """A person who says something and leaves."""
        with self._terminal() as terminal:
            terminal.begin(text)
            terminal.until(SPEAK)
            terminal.begin("hello")
            terminal.until(SPEAK)
            printed, code = terminal.try_typing("/quit")
        return code, printed

    def _confirmed(self, text: str) -> tuple[int, str]:
        """A person who is asked whether she means it."""
        with self._terminal() as terminal:
            terminal.begin(text)
            terminal.until(YES_OR_NO)
            printed, code = terminal.try_typing("y")
        return code, printed

    def _terminal(self) -> Terminal:
        env = environment({"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
        return Terminal(self.home.folder, env, [self._address.fd])

    def _shell(self, text: str) -> tuple[int, str]:
        """What the shell itself does; what goes on behind it ends with the page."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = environment({"PATH": path, "PIP_NO_INDEX": "1"})
        with (self.home.folder / "printed.txt").open("wb") as out:
            shell = subprocess.Popen(  # noqa: S603  our own page
                ["bash", "-c", text],  # noqa: S607
                cwd=self.home.folder,
                env=env,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._stack.callback(_end_group, shell.pid)
        return shell.wait(), (self.home.folder / "printed.txt").read_text()

    def _in_process(self, text: str) -> tuple[int, str]:
        """A command of ours, or curl, perhaps with an input and an output."""
        given, piped, text = text.rpartition(" | ") if text.startswith("echo ") else ("", "", text)
        text, _, file = text.partition(" > ")
        words = shlex.split(text, comments=True)
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(_Output()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            if words[0] == "curl":
                status = curl.send(words[1:])
                return int(status >= 400), out.getvalue()  # a refusal
            assert words[0] == "carnet", text
            if piped:
                patch.setattr(sys, "stdin", io.StringIO(shlex.split(given)[1]))
            code = run(words[1:])
        if file:
            (self.home.folder / file.strip()).write_text(out.getvalue())
        self._printed = out.getvalue() + err.getvalue()
        return code, self._printed

    def named(self, line: str) -> str:
        """The line, with what a reader has in the place of the page's names."""
        text = line.replace("\\\n", " ").replace("8700", str(self.home.port))
        text = text.replace("/backups/", f"{self.home.folder}/")
        for pattern, make in NAMES:
            if re.search(pattern, text):
                found = make(self, text)
                text = re.sub(pattern, lambda _, found=found: found, text)  # type: ignore[misc]
        text = re.sub(r"\$\(cat ([\w./]+)\)", _contents, text)
        return text.replace("$CARNET_TOKEN", self.home.token).replace("$TOKEN", self.home.token)

    # -- names

    def identifier(self, text: str) -> str:
        """What `ID` is in a line."""
        if "inbox" in text:
            kinds = {"--value M": "sizes", "--value without": "party", "--up-to": "shop"}
            return self.question(next((kinds[each] for each in kinds if each in text), "asks"))
        if "outbox" in text:
            return self.dead_delivery()
        if "chat" in text:
            return str(self.quietly("chat", "--history")["conversations"][0]["id"])
        return self.task(text)

    def rule(self, _: str) -> str:
        return str(self.quietly("inbox", "rules")["rules"][0]["rule"])

    def run(self, text: str) -> str:
        if "budget" in text:  # while it goes on
            self.question("asks")
        return str(self.quietly("runs")["runs"][0]["run"])

    def file(self, text: str) -> str:
        if "--token" in text:
            return "loop.token" if "conform" in text else "var/starter.token"
        signed = self.partner.json("ledger", "statement", self.home.domain)["statement"]
        (self.home.folder / "statement.txt").write_text(signed)
        return "statement.txt"

    def key_id(self, _: str) -> str:
        return str(self.quietly("keys", "list")["keys"][0]["kid"])

    def client(self, _: str) -> str:
        """Bob, as the refusal of his call names him."""
        found = re.search(r"agent://client-\w+", self._printed)
        self._client = found[0] if found else self._client
        return self._client

    def client_key(self, text: str) -> str:
        found = re.search(r"--key (\S+=)", self._printed) if "agent://client-" in text else None
        return found[1] if found else KEY

    def session(self, _: str) -> str:
        token = (self.home.folder / "alice.token").read_text()
        assert (
            request(
                "POST", f"{self.home.url}/session", [("authorization", f"Bearer {token}")], b""
            ).status
            == 201
        )
        return str(self.quietly("sessions", "list")["sessions"][0]["id"])

    def seal(self, _: str) -> str:
        return str(self.quietly("ledger", "verify")["seal"])

    def database(self, _: str) -> str:
        return self._server().empty()

    def receiver(self, _: str) -> str:
        """The port of a receiver, which webhooks may go to."""
        if str(self.port) not in (self.home.folder / "carnet.toml").read_text():
            self.allow(self.port)
        return str(self.port)

    def critic(self, _: str) -> str:
        """An agent of the partner, where no gateway of ours says where that is."""
        token = self.partner.folder / "var" / "starter.token"
        return f"{self.partner.url}/agents/critic --token @{token}"

    def process(self, _: str) -> str:
        assert self.home.process is not None
        return str(self.home.process.pid)

    def hook(self, text: str) -> str:
        return f"http://127.0.0.1:{self.receiver(text)}/in"


class _Output(io.StringIO):
    """An output that also takes bytes, as `curl` writes them."""

    @property
    def buffer(self) -> Any:
        return self

    def write(self, text: Any) -> int:
        return super().write(text.decode() if isinstance(text, bytes) else text)


def _contents(found: "re.Match[str]") -> str:
    return Path(found[1]).read_text().strip()


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)


NAMES: Final[list[tuple[str, Callable[[Reader, str], str]]]] = [
    (r"agent://client-\w+", Reader.client),
    (r"\bBASE64\b", Reader.client_key),
    (r"postgresql://carnet@db\.acme\.example/carnet", Reader.database),
    (r"\bID\b|\bmsg_0197\.\.\.|\b3fa85f64-[\w-]+", Reader.identifier),
    (r"\bRULE\b", Reader.rule),
    (r"\bRUN\b|\bconv_abc\b", Reader.run),
    (r"\bFILE\b", Reader.file),
    (r"\bHOST\b", lambda *_: "127.0.0.1"),
    (r"\bPID\b", Reader.process),
    (r"\bk-3f0c91a2b7de\b", Reader.key_id),
    (r"(?<=sessions end )7\b", Reader.session),
    (r"\b9f3c\.\.\.", Reader.seal),
    (r"\b9000\b", Reader.receiver),
    (r"\bagent://SENDER\b", lambda *_: "agent://globex.example"),
    (r"https://(gw\.)?globex\.example", lambda reader, _: reader.partner.url),
    (r"@critic@initech\.example", Reader.critic),
    (r"https://travel\.example/agents/booking", lambda reader, _: reader.travel),
    (r"\bURL\b", lambda reader, _: reader.loop),
    (r"https://hooks\.acme\.example/in", Reader.hook),
    (r"agent://acme\.example", lambda reader, _: f"agent://{reader.home.domain}"),
    (r"https://(gw\.)?acme\.example", lambda reader, _: reader.home.url),
]
