"""The endpoint of the `a2a-sdk` with the package's own store of tasks, in a file of SQLite.

As one would run it: what was answered is on the disk (the log is written ahead, and synced with
every commit), and who finds the file locked waits. With the package's defaults it is slower, and
fails where several write.
"""

import os
from typing import Any

from a2a.server.models import Base, TaskModel
from a2a.server.tasks import DatabaseTaskStore
from sqlalchemy import create_engine, event
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

from bench.a2a_peer import TaskExecutor, build
from bench.subjects import A2A_FILE

LOCKED_SECONDS = 60


def build_durable() -> Starlette:
    """The application of an agent that answers with tasks."""
    file = os.environ[A2A_FILE]
    # The first requests would make the table, several of them at once, and fail.
    Base.metadata.create_all(create_engine(f"sqlite:///{file}"), [TaskModel.__table__])
    url = f"sqlite+aiosqlite:///{file}"
    engine = create_async_engine(url, connect_args={"timeout": LOCKED_SECONDS})
    event.listen(engine.sync_engine, "connect", _write_ahead)
    return build(TaskExecutor(), DatabaseTaskStore(engine, create_table=False))


def _write_ahead(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()
