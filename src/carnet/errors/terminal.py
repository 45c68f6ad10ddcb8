"""What a person meets at the command line; never on the wire."""

from carnet.errors.base import CarnetError


class ConfigInvalid(CarnetError, code="config_invalid"):
    """A value of the configuration cannot be used. The key and where it came from are named.

    It is the first that was met; once it is corrected, 'carnet config check' shows the next.
    """

    template = "{key}: {reason}"
    hint = "Correct it, then look whether more is wrong: carnet config check"


class UsageInvalid(CarnetError, code="usage_invalid", status=400):
    """A command was given something it cannot use."""

    template = "{reason}"
    hint = "{fix}"


class Unreachable(CarnetError, code="unreachable", status=503):
    """The gateway that a command wants to talk to does not answer."""

    template = "No gateway answers at {url}."
    hint = "Start it with: carnet serve"
