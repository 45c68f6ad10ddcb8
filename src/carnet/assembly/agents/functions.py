"""Finding the Python object that `target = "module:name"` means."""

import importlib
import inspect
import sys
import traceback
from pathlib import Path

from carnet.assembly.agents.modules import is_own
from carnet.config import Settings
from carnet.errors import ConfigInvalid
from carnet.guards.target.injection import Classifier
from carnet.runtime.policy import Judge, PolicyAdapter
from carnet.runtime.skills.definition import Definition, define


def load_agent(target: str, base: Path, *, key: str) -> Definition:
    """The agent: a function that chats, or one with skills."""
    return define(load(target, base, key=key), target, key=key)


def load_classifier(target: str, base: Path, *, key: str) -> Classifier:
    """The second opinion about payloads: any function that takes one and says True or False."""
    classifier = load(target, base, key=key)
    if not callable(classifier):
        raise ConfigInvalid(key=key, reason=f"'{target}' is not a function")
    return classifier


def load_policy(target: str, base: Path, *, key: str) -> Judge:
    """The operator's policy: a function of a principal, a caller context and an action."""
    judge = load(target, base, key=key)
    if not callable(judge):
        raise ConfigInvalid(key=key, reason=f"'{target}' is not a function")
    try:
        inspect.signature(judge).bind(None, None, None)
    except TypeError:
        reason = f"'{target}' does not take a principal, a caller context and an action"
        raise ConfigInvalid(key=key, reason=reason) from None
    except ValueError:  # its signature cannot be seen
        pass
    return judge


def build_policy(settings: Settings) -> PolicyAdapter | None:
    """What asks the policy of a configuration; None where there is none."""
    target = settings.policy.target
    if target is None:
        return None
    judge = load_policy(target, settings.base, key="policy.target")
    return PolicyAdapter(judge, seconds=settings.policy.seconds)


def load(target: str, base: Path, *, key: str) -> object:
    """Import what is named; modules beside carnet.toml come first."""
    module_name, _, name = target.partition(":")
    folder = str(base)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever it raises, the operator needs the key
        reason = f"importing '{module_name}' failed{_place(error, base)}: "
        reason += f"{type(error).__name__}: {error}"
        raise ConfigInvalid(key=key, reason=reason) from error
    found: object = getattr(module, name, None)
    if found is None:
        raise ConfigInvalid(key=key, reason=f"the module '{module_name}' has no '{name}'")
    return found


def _place(error: BaseException, base: Path) -> str:
    """Where in the user's own files it went wrong: several agents may stand in one module."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(Path(frame.filename), base)]
    return f" in line {own[-1].lineno} of {Path(own[-1].filename).name}" if own else ""
