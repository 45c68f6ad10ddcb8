"""`carnet hooks`: addresses at which other programs tell your agents what has happened."""

import json
from pathlib import Path
from typing import Any

import click

from carnet.cli.invocation import Group, Invocation, pass_invocation
from carnet.cli.triggers.words import AS, Wording, act, add_commands, ask

SCHEMES = ("standard", "github", "stripe", "slack", "url")

_SECRET = click.option(
    "--secret-file", metavar="FILE", help="The secret that the sender has made; else we make one."
)


@click.group(cls=Group)
def hooks() -> None:
    """Make, see, pause and delete addresses at which programs tell your agents something."""


@hooks.command()
@click.argument("name")
@click.option("--agent", required=True, metavar="AGENT", help="Who is told.")
@click.option(
    "--scheme", type=click.Choice(SCHEMES), default="standard", help="How events are signed."
)
@click.option("--template", metavar="TEXT", help="What it is told: 'Sold: {{ body.item.name }}'.")
@_SECRET
@AS
@pass_invocation
def add(invocation: Invocation, /, name: str, token: str | None, **asked: Any) -> None:
    """Make a hook, which runs with your token, and show its address and its secret once.

    standard: Standard Webhooks. github, stripe, slack: as these sign. url: nothing is signed, and
    who knows the address is believed.
    """
    secret = _read_secret(asked.pop("secret_file"))
    given = {"name": name, "secret": secret, **asked}
    sent = {key: value for key, value in given.items() if value is not None}
    page = ask(invocation, token, "POST", "/hooks", sent)
    invocation.result(page, lambda: invocation.spell(_secret_text(page)))


def _secret_text(page: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"Send events to: {page['address']}",
            f"Secret:         {page['secret']}",
            "The secret is shown this once. A new one: carnet hooks rotate " + page["name"],
        ]
    )


def _read_secret(file: str | None) -> str | None:
    from carnet.errors import UsageInvalid

    if file is None:
        return None
    try:
        return Path(file).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise UsageInvalid(
            reason=f"The file {file} cannot be read.", fix="Name a file that holds the secret."
        ) from None


SHOWN = Wording(
    noun="hook",
    columns=("name", "agent", "scheme", "state", "address"),
    lines=("agent", "scheme", "address", "state", "template"),
    make="NAME --agent AGENT",
    rests="takes nothing",
    helps={
        "show": "Show a hook: its address, and what became of the last events.",
        "pause": "Let a hook take nothing until it is resumed; who sends to it is told so.",
        "resume": "Let a hook go on, with your token.",
        "delete": "Delete a hook; the conversations that it began stay.",
    },
)
add_commands(hooks, SHOWN)


@hooks.command()
@click.argument("name")
@click.option("--body", default="{}", metavar="JSON", help="The event, as it would be sent ({}).")
@AS
@pass_invocation
def fire(invocation: Invocation, name: str, body: str, token: str | None) -> None:
    """Have a hook begin now, as if an event had come."""
    from carnet.errors import UsageInvalid

    try:
        event = json.loads(body)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise UsageInvalid(
            reason="--body is no JSON object.", fix="Quote it for the shell: --body '{\"id\": 1}'"
        )
    text = f"{name} begins now. carnet hooks show {name}"
    act(invocation, token, f"{SHOWN.path(name)}/fire", text, event)


@hooks.command()
@click.argument("name")
@click.option(
    "--hours",
    type=click.IntRange(0, 168),
    default=24,
    help="How long the former secret is taken too (24).",
)
@_SECRET
@AS
@pass_invocation
def rotate(
    invocation: Invocation, name: str, hours: int, secret_file: str | None, token: str | None
) -> None:
    """Give a hook another secret, and show it once."""
    secret = _read_secret(secret_file)
    asked = {"hours": hours, **({} if secret is None else {"secret": secret})}
    page = ask(invocation, token, "POST", f"{SHOWN.path(name)}/rotate", asked)
    invocation.result(page, lambda: invocation.spell(_secret_text(page)))
