"""Empty environments: a Python without packages, and wheels of what Carnet depends on.

Law. Nothing is fetched: the wheels are made of what the locks have installed here, so the tests are
     the same without a network. A dependency that is not declared is not in them.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from tests.docs.test_quickstart import ROOT

SECONDS = 300
PIN = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


def clean(**more: str) -> dict[str, str]:
    """An environment for processes, without what leads to the packages of this one."""
    dropped = ("PYTHON", "CARNET", "VIRTUAL_ENV", "PIP_", "COVERAGE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull, **more}


def run(
    words: list[str] | str, at: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command, or a line of a shell; one that fails fails the test."""
    is_line = isinstance(words, str)
    done = subprocess.run(  # noqa: S603  lines of our own files
        words,
        cwd=at,
        env=dict(env),
        shell=is_line,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done


def empty_environment(folder: Path) -> Path:
    """A Python that has nothing; its folder of commands."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin"


def locked(name: str) -> list[str]:
    """What a lock names."""
    return PIN.findall((ROOT / "requirements" / f"{name}.txt").read_text())


def wheels_of(names: list[str], folder: Path) -> None:
    """Wheels of packages that are installed here."""
    folder.mkdir(exist_ok=True)
    for name in names:
        _pack(metadata.distribution(name), folder)


def _pack(package: metadata.Distribution, folder: Path) -> None:
    tag = re.findall(r"^Tag: (.+)$", package.read_text("WHEEL") or "", re.MULTILINE)[0]
    name = re.sub(r"[-_.]+", "_", package.metadata["Name"])
    base = f"{name}-{package.version}"
    record = f"{base}.dist-info/RECORD"
    lines: list[str] = []
    with zipfile.ZipFile(folder / f"{base}-{tag}.whl", "w") as wheel:
        for file in package.files or []:
            place = re.sub(r"^[^/]+\.dist-info/", f"{base}.dist-info/", str(file))
            if place.startswith("..") or place.endswith((".pyc", "/RECORD", "/direct_url.json")):
                continue
            data = Path(str(file.locate())).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            wheel.writestr(place, data)
            lines.append(f"{place},sha256={digest},{len(data)}")
        wheel.writestr(record, "\n".join([*lines, f"{record},,", ""]))


def build_wheel(source: Path, folder: Path) -> Path:
    """The wheel of Carnet, by the build backend that is installed here."""
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder)]
    run([sys.executable, "-m", "pip", *words, str(source)], source, clean())
    (wheel,) = folder.glob("carnet-*.whl")
    return wheel
