"""Finding the Python function that `target = "module:name"` means."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from carnet.errors import ConfigInvalid
from carnet.runtime.native import check_function
from carnet.runtime.visit import Visit


def load_function(target: str, base: Path, *, key: str) -> Callable[[Visit], Any]:
    """Import the function; modules beside carnet.toml come first."""
    module_name, _, name = target.partition(":")
    folder = str(base)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the user's module raises, the operator needs the key
        reason = f"importing '{module_name}' failed: {type(error).__name__}: {error}"
        raise ConfigInvalid(key=key, reason=reason) from error
    function = getattr(module, name, None)
    if function is None:
        raise ConfigInvalid(key=key, reason=f"the module '{module_name}' has no '{name}'")
    return check_function(function, target)
