"""Settings: what an operator may set, read once at start. Known to `assembly` and `cli` alone."""

from carnet.config.engine import EngineSettings, ModelSettings
from carnet.config.file import find, load
from carnet.config.limits import (
    LedgerSettings,
    Limits,
    LogSettings,
    RetentionSettings,
    StoreSettings,
)
from carnet.config.outbound import EgressSettings, PeerSettings
from carnet.config.owner import refuse_foreign
from carnet.config.readers import SecretRef
from carnet.config.secrets import resolve_secret, secret_path
from carnet.config.settings import (
    AgentSettings,
    GatewaySettings,
    Settings,
)
from carnet.config.tools import ToolSettings

__all__ = [
    "AgentSettings",
    "EgressSettings",
    "EngineSettings",
    "GatewaySettings",
    "LedgerSettings",
    "Limits",
    "LogSettings",
    "ModelSettings",
    "PeerSettings",
    "RetentionSettings",
    "SecretRef",
    "Settings",
    "StoreSettings",
    "ToolSettings",
    "find",
    "load",
    "refuse_foreign",
    "resolve_secret",
    "secret_path",
]
