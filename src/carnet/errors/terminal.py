"""What a person meets at the command line; never on the wire."""

from carnet.errors.base import CarnetError


class ConfigInvalid(CarnetError, code="config_invalid"):
    """A value of the configuration cannot be used. The key and where it came from are named.

    All that can be told at once is told at once, in the order of the file. What the values lead to,
    such as functions and secrets, is looked at when all of them can be used.
    """

    others: "tuple[ConfigInvalid, ...]" = ()  # what is wrong beside it

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
