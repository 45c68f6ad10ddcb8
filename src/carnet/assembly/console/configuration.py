"""What operators ask and change: the operational endpoints, and those of the configuration file."""

import os
from pathlib import Path

from carnet.config import Settings
from carnet.config.file import load
from carnet.gateway.configuration.changes import ROUTES as CHANGES
from carnet.gateway.configuration.changes import ConfigurationChanges
from carnet.gateway.operations import ROUTES as OPERATIONS
from carnet.gateway.operations import Operations
from carnet.http.exchange import Row, offered


def operation_rows(settings: Settings, operations: Operations) -> list[Row]:
    """Their rows; a gateway without a file has nothing to change, and says so."""

    def read(path: Path) -> Settings:
        return load(path, os.environ)

    changes = ConfigurationChanges(settings, read, lambda: operations.reloading)
    return [*offered(OPERATIONS, operations), *offered(CHANGES, changes)]
