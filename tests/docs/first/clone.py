"""A clone of this checkout, and an environment in which nothing else is known.

What is not shared with the checkout: its files (they are cloned, with what was changed and not yet
committed), its environment (`make` makes another), and Carnet itself, which is built and installed
from the clone. What is shared: packages of others that were downloaded before. They are found in
the environment of the tests by a path file, so that pip, which is told of no index, finds the
versions of the lock files there instead of fetching them again. That takes seconds in the place of
a minute, and needs no network. The interpreter is that of the tests: the packages are made for it.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.architecture.tree import ROOT

NOT_THERE: Final = shutil.ignore_patterns(".*", "__pycache__", "var", "build", "dist")
KEPT: Final = ("PATH", "LANG", "LC_ALL", "PGPASSWORD")  # of the environment of the tests


def clone_into(folder: Path) -> Path:
    """The checkout as somebody has it who has just cloned it; where it is no repository, a copy."""
    tree = folder / "carnet"
    if not (ROOT / ".git").exists():
        shutil.copytree(ROOT, tree, ignore=NOT_THERE)
        return tree
    rules = folder / "gitconfig"  # the checkout may be another user's
    rules.write_text("[safe]\n\tdirectory = *\n")
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": str(rules), "HOME": str(folder)}
    _git(["clone", "--quiet", str(ROOT), str(tree)], env)
    changed = ["-C", str(ROOT), "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    for name in filter(None, _git(changed, env).split("\0")):
        (tree / name).unlink(missing_ok=True)
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


def _git(words: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(  # noqa: S603  our own words
        ["git", *words],  # noqa: S607
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment_of(tree: Path) -> dict[str, str]:
    """What a terminal knows there: nothing of the tests but where programs are, and no index."""
    home = tree.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    ours = Path(sys.executable).parent  # a newcomer has no `carnet`, and no packages
    path = [each for each in kept["PATH"].split(":") if Path(each).resolve() != ours.resolve()]
    python = Path(getattr(sys, "_base_executable", sys.executable))
    return {
        **kept,
        "HOME": str(home),
        "PATH": ":".join([*path, str(_stand_in_for_curl(tree.parent))]),
        "PYTHON": str(python),
        "PIP_NO_INDEX": "1",
    }


def share_packages(environment: Path) -> None:
    """Let an environment of a clone find what was downloaded for that of the tests."""
    (site,) = environment.glob("lib/python*/site-packages")
    ours = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "downloaded.pth").write_text("".join(f"{path}\n" for path in ours))


def _stand_in_for_curl(folder: Path) -> Path:
    """A command of that name for machines that have none: see tests/docs/curl.py."""
    command = folder / "stand-in" / "curl"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/docs/curl.py" "$@"\n')
    command.chmod(0o700)
    return command.parent
