"""`make interop-js`: the SDK for JavaScript drives every operation against a gateway.

It is no part of the tests: it needs node 20 and npm, and installs what the lockfile names into
`build/interop-js`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.a2a.pages import PageHost
from tests.support.organisation import Organisation

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "interop-js"
BINDINGS = ("JSONRPC", "HTTP+JSON")
CONFIG = """
[agents.tck]
kind = "python"
target = "sut:tck"

[egress]
allow = ["127.0.0.0/8"]
"""


def main() -> int:
    """Install, start, drive both bindings, stop."""
    install()
    failed = 0
    with tempfile.TemporaryDirectory() as name, PageHost().serving() as receiver:
        gateway = Organisation(Path(name), "acme.example")
        shutil.copy(ROOT / "examples" / "a2a_sut" / "sut.py", gateway.folder)
        gateway.configure(CONFIG)
        gateway.start()
        try:
            for binding in BINDINGS:
                failed += drive(f"{gateway.url}/agents/tck", gateway.token, binding, receiver.url)
        finally:
            gateway.stop()
    return 1 if failed else 0


def install() -> None:
    """What the lockfile names, exactly."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json", "client.mjs"):
        shutil.copy(HERE / file, BUILD)
    install = [program("npm"), "ci", "--silent", "--no-audit", "--no-fund"]
    subprocess.run(install, cwd=BUILD, check=True)  # noqa: S603


def drive(*arguments: str) -> int:
    """How many bindings failed, of one."""
    ran = subprocess.run([program("node"), "client.mjs", *arguments], cwd=BUILD, check=False)  # noqa: S603
    return int(ran.returncode != 0)


def program(name: str) -> str:
    """Where a program is, or what to do about it."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"make interop-js needs {name}: install node 20 or newer, with npm.")
    return found


if __name__ == "__main__":
    sys.exit(main())
