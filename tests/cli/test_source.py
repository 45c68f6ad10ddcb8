"""What is read of agents is what importing them gives, or is said not to be seen."""

import sys
from pathlib import Path

import pytest

from carnet.assembly.agents.functions import load_agent
from carnet.cli.references import own_modules
from carnet.cli.source import look
from carnet.errors import ConfigInvalid

KEY = "agents.x.target"
SEEN = {
    "a function": "async def x(visit): ...",
    "a generator": "async def x(visit):\n    yield ''",
    "a plain function": "def x(visit): ...",
    "a plain generator": "import carnet\n@carnet.agent('x')\ndef x(visit):\n    yield ''",
    "an agent": "import carnet\n@carnet.agent('x')\nasync def x(visit): ...",
    "by another name": "import carnet as c\n@c.agent('x')\nasync def x(visit): ...",
    "imported from": "from carnet import agent as a\n@a('x')\nasync def x(visit): ...",
    "one skill": "import carnet\n@carnet.skill('book')\ndef x(name: str, n: int = 1) -> dict: ...",
    "several": "import carnet\nx = carnet.agent('x')\n@x.skill('a')\ndef f(n: int): ...\n"
    "@x.skill('b', modes=['sync'])\nasync def g(n: int): ...\n@x\nasync def h(visit): ...",
    "a chat of its own": "import carnet\nx = carnet.agent('x')\n@x\nasync def h(visit): ...\n"
    "@x.skill('chat')\nasync def g(n: int): ...",
    "by its chat": "import carnet\ny = carnet.agent('y')\n@y\nasync def x(visit): ...\n"
    "@y.skill('b')\nasync def g(n: int): ...",
    "under a condition": "if True:\n    async def x(visit): ...\nelse:\n    pass",
}
NOT_SEEN = {
    "elsewhere": "from os import path as x",
    "perhaps elsewhere": "from os.path import *",
    "decorated": "import functools\n@functools.cache\ndef x(): ...",
    "twice": "import carnet\n@print\n@carnet.agent('x')\nasync def x(visit): ...",
    "made": "x = print('canary')",
    "asked for": "def __getattr__(name): ...",
    "a name that is computed": "import carnet\nNAME = 'b'\n@carnet.skill(NAME)\ndef x(n: int): ...",
    "given elsewhere": "import carnet\nx = carnet.agent('x')",
}
WRONG = {
    "nothing": ("y = 1", "has no 'x'"),
    "no parameter": ("def x(): ...", "write it as 'async def name(visit)' or 'def name(visit)'"),
    "a skill": (
        "import carnet\ny = carnet.agent('y')\n@y.skill('s')\ndef x(n: int): ...",
        "is a skill of agent 'y'",
    ),
    "no Python": ("def x(:", "in line 1 of mod.py"),
    "no text": ("\0", "mod"),
    "too deep": ("x = " + "(" * 5000 + ")" * 5000, "mod"),
}


@pytest.mark.parametrize("text", SEEN.values(), ids=list(SEEN))
def test_what_is_seen_is_what_is_imported(tmp_path: Path, text: str) -> None:
    (tmp_path / "mod.py").write_text(text + "\n")
    sight = look("mod:x", tmp_path, key=KEY)
    with own_modules(tmp_path):
        loaded = load_agent("mod:x", tmp_path, key=KEY)
    assert sight.skills == tuple(skill.id for skill in loaded.skills)
    assert sight.unseen == ""
    assert sight.functions


@pytest.mark.parametrize("text", NOT_SEEN.values(), ids=list(NOT_SEEN))
def test_what_cannot_be_seen_is_said(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mod.py").write_text(text + "\n")
    assert look("mod:x", tmp_path, key=KEY).unseen
    assert "mod" not in sys.modules
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=list(WRONG))
def test_what_can_be_seen_to_be_no_agent_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "mod.py").write_text(text + "\n")
    with pytest.raises(ConfigInvalid, match=message.replace("(", r"\(").replace(")", r"\)")):
        look("mod:x", tmp_path, key=KEY)


def test_parameters_are_shown_as_they_are_written(tmp_path: Path) -> None:
    package = tmp_path / "deep" / "mod"
    package.mkdir(parents=True)
    text = "import carnet\n@carnet.skill('s')\ndef x(a, b=1, *, c: int = 2): ...\n"
    (package / "__init__.py").write_text(text)
    assert look("deep.mod:x", tmp_path, key=KEY).functions == ("x(a, b, c)",)


def test_a_module_that_is_installed_is_not_looked_for(tmp_path: Path) -> None:
    assert "is not in" in look("json:loads", tmp_path, key=KEY).unseen
