"""`carnet inbox`: what agents wait for an answer to, and the answer."""

import json
from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import (
    Group,
    Invocation,
    find_begun,
    more_of,
    pass_invocation,
    table,
    wait,
)
from carnet.errors import UsageInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from carnet.cli.reach.requests import Ask

MOST = 200
BEGINS = "int_"  # how ids of questions begin

_AS = click.option("--as", "token", metavar="TOKEN", help="Answer with this token, or @FILE.")


@click.group(cls=Group, invoke_without_command=True)
@click.option("--all", "all_of_them", is_flag=True, help="Also those that were answered.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, help="How many (20).")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Go on where a list ended.")
@_AS
@click.pass_context
def inbox(ctx: click.Context, /, **chosen: Any) -> None:
    """See what agents ask for, and answer: approve or deny."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_questions, **chosen)


@inbox.command("list")
@click.option("--all", "all_of_them", is_flag=True, help="Also those that were answered.")
@click.option("--limit", type=click.IntRange(1, MOST), default=20, help="How many (20).")
@click.option("--before", type=click.IntRange(1), metavar="N", help="Go on where a list ended.")
@_AS
@pass_invocation
def list_questions(
    invocation: Invocation,
    all_of_them: bool,  # noqa: FBT001  click passes it
    limit: int,
    before: int | None,
    token: str | None,
) -> None:
    """List what waits for an answer, the newest first."""
    from urllib.parse import urlencode

    asked = {"limit": limit, "status": "all" if all_of_them else "open", "before": before}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    page = wait(_ask(invocation, token, "GET", f"/approvals?{query}"))
    is_file = token is not None and token.startswith("@")  # a token itself is not printed
    chosen = {"all": all_of_them, "limit": limit, "as": token if is_file else None}
    has_owner = token is None or len({entry["owner"] for entry in page["approvals"]}) > 1
    invocation.result(
        page,
        lambda: invocation.spell(_list_text(page, chosen, has_owner=has_owner)),
        page["approvals"],
    )


def _list_text(page: dict[str, Any], chosen: dict[str, Any], *, has_owner: bool) -> str:
    """`has_owner` shows whose each one is: to who sees what others are asked."""
    from carnet.cli.times import short

    if not page["approvals"]:
        return "Nothing waits for an answer."
    rows = [
        [
            *(entry["id"], *([entry["owner"]] if has_owner else []), short(entry["created"])),
            *(entry["kind"], _amount(entry), entry["asked_by"], entry["status"], entry["message"]),
        ]
        for entry in page["approvals"]
    ]
    titles = ["ID", *(["WHOSE"] if has_owner else []), "ASKED", "KIND", "AMOUNT"]
    titles += ["ASKED BY", "STATUS", "MESSAGE"]
    more = f"\n{more_of('inbox list', page['next'], chosen)}" if page.get("next") else ""
    return table(rows, titles) + more


def _amount(entry: dict[str, Any]) -> str:
    other = entry.get("other_amount")
    if other:
        return f"{other['amount']} {other['currency']} (not here)"
    return f"{entry['amount']} {entry['currency']}" if entry["amount"] else "-"


@inbox.command()
@click.argument("name", metavar="ID")
@_AS
@pass_invocation
def show(invocation: Invocation, name: str, token: str | None) -> None:
    """Show one question: what is asked, by whom, until when, and what was answered.

    The beginning of its ID is enough if only one begins so.
    """
    from carnet.cli.invocation import visible
    from carnet.runtime.system import SystemClock

    page = wait(_show(invocation, name, token))
    now = SystemClock().wall_us()
    invocation.result(page, lambda: invocation.spell(visible(_text(page, token, now))))


async def _show(invocation: Invocation, name: str, token: str | None) -> dict[str, Any]:
    from carnet.cli.reach.requests import asking

    async with asking(invocation, token) as ask:
        return await _find(ask, name)


def _text(page: dict[str, Any], token: str | None, now: int) -> str:
    from carnet.cli.call.answers import approvals, denial, without
    from carnet.cli.times import until

    shown = page | ({"other_amount": _amount(page)} if page.get("other_amount") else {})
    if page["status"] == "open" and page.get("expires"):
        shown["expires"] = until(page["expires"], now)
    labels = {"url": page.get("action_label") or "url"}
    lines = [
        f"{labels.get(name, name.replace('_', ' '))}: {_word(value)}"
        for name, value in shown.items()
        if value and name != "action_label"
    ]
    if page["status"] == "open":
        lines += ["", *approvals(page, token), denial(page, token), *without(page, token)]
    return "\n".join(lines)


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answering(command: "Callable[..., None]") -> "Callable[..., None]":
    """The options of an answer."""
    options = (
        click.argument("name", metavar="ID"),
        click.option("--value", metavar="TEXT", help="What is asked for, or one of the options."),
        click.option("--json", "document", metavar="JSON", help="The same as JSON."),
        _AS,
    )
    for option in reversed(options):
        command = option(command)
    return command


@inbox.command()
@_answering
@click.option("--remember", is_flag=True, help="Answer the same so from now on.")
@click.option("--up-to", metavar="AMOUNT", help="With --remember: what payments may cost in all.")
@pass_invocation
def approve(
    invocation: Invocation,
    name: str,
    value: str | None,
    document: str | None,
    token: str | None,
    remember: bool,  # noqa: FBT001  click passes it
    up_to: str | None,
) -> None:
    """Give what is asked for; the call goes on at once.

    The beginning of its ID is enough if only one begins so.
    """
    if up_to is not None and not remember:
        raise UsageInvalid(reason="--up-to is for a rule.", fix="Give --remember beside it.")
    rule = {"remember": {"ceiling": up_to}} if remember else {}
    _answer(
        invocation, name, {"outcome": "accepted", "value": _value(value, document)} | rule, token
    )


@inbox.command()
@_answering
@pass_invocation
def deny(
    invocation: Invocation, name: str, value: str | None, document: str | None, token: str | None
) -> None:
    """Refuse what is asked for; the agent goes on with that."""
    answer = {"outcome": "rejected", "value": _value(value, document)}
    _answer(invocation, name, answer, token)


@inbox.command()
@_AS
@pass_invocation
def rules(invocation: Invocation, token: str | None) -> None:
    """List the answers that were given for the future."""
    page = wait(_ask(invocation, token, "GET", "/rules"))
    invocation.result(page, lambda: invocation.spell(_rules_text(page)), page["rules"])


def _rules_text(page: dict[str, Any]) -> str:
    if not page["rules"]:
        return "No answers were given for the future: carnet inbox approve ID --remember"
    rows = [
        [
            *(str(rule["rule"]), rule["kind"], rule["ceiling"] or "-", rule["used"]),
            *(rule["chain"], rule["message"] or _any_of(rule["kind"])),
        ]
        for rule in page["rules"]
    ]
    return table(rows, ["RULE", "KIND", "UP TO", "USED", "ASKED BY", "MESSAGE"])


def _any_of(kind: str) -> str:
    """What a rule answers that is for no one question."""
    return {"payment": "any payment", "approver": "may agree to your payments"}.get(kind, "-")


@inbox.command()
@click.argument("name", metavar="NAME")
@click.option("--up-to", metavar="AMOUNT", required=True, help="What she may agree to in all.")
@_AS
@pass_invocation
def allow(invocation: Invocation, name: str, up_to: str, token: str | None) -> None:
    """Let another person agree to your payments, as far as an amount goes.

    She needs the permission 'approve', to see them. Whose payments is told by the token: give
    yours with --as. Take it back with 'carnet inbox forget RULE'.
    """
    page = wait(_ask(invocation, token, "POST", "/rules", {"person": name, "ceiling": up_to}))
    text = f"{name} may agree to your payments, up to {up_to} in all."
    if page.get("note"):
        text += f"\n{page['note']}"
        text += f"\nSay so: carnet people roles {name} ROLE --permission approve"
    invocation.result(page, lambda: invocation.spell(text))


@inbox.command()
@click.argument("number", metavar="RULE", type=click.IntRange(1))
@_AS
@pass_invocation
def forget(invocation: Invocation, number: int, token: str | None) -> None:
    """Take a rule back; the next time you are asked again."""
    page = wait(_ask(invocation, token, "POST", f"/rules/{number}/end"))
    invocation.result(page, lambda: f"Rule {number} holds no more.")


def _value(value: str | None, document: str | None) -> Any:
    if value is not None and document is not None:
        raise UsageInvalid(reason="--value and --json are both given.", fix="Give one of them.")
    if document is None:
        return value
    try:
        return json.loads(document)
    except ValueError:
        raise UsageInvalid(
            reason="--json is no JSON.", fix="Quote it for the shell: --json '{\"count\": 3}'"
        ) from None


def _answer(invocation: Invocation, name: str, answer: dict[str, Any], token: str | None) -> None:
    page = wait(_send(invocation, name, answer, token))
    word = "Approved" if answer["outcome"] == "accepted" else "Denied"
    if page.get("other_amount"):
        word += ", and nothing was paid here"
    text = f"{word}. The call goes on: carnet run show {page['run']} --full"
    invocation.result(page, lambda: invocation.spell(text))


async def _send(
    invocation: Invocation, name: str, answer: dict[str, Any], token: str | None
) -> dict[str, Any]:
    from carnet.cli.call.answers import check
    from carnet.cli.reach.requests import asking

    async with asking(invocation, token) as ask:
        question = await _find(ask, name)
        check(question, answer, token)
        return await ask("POST", _path(question["id"]), answer)


async def _find(ask: "Ask", name: str) -> dict[str, Any]:
    """A question by its id, or by a beginning that no other of the newest has."""
    from carnet.cli.failures import GatewayError
    from carnet.errors import InterruptNotFound

    try:
        return await ask("GET", _path(name))
    except GatewayError as error:
        if error.facts.get("code") != InterruptNotFound.code:
            raise
        begun = name if name.startswith(BEGINS) else f"{BEGINS}{name}"
        page = await ask("GET", f"/approvals?status=all&limit={MOST}")
        found = find_begun(begun, [entry["id"] for entry in page["approvals"]], "question")
        if found is None:
            raise
    return await ask("GET", _path(found))


async def _ask(
    invocation: Invocation,
    token: str | None,
    method: str,
    path: str,
    content: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Ask the gateway once."""
    from carnet.cli.reach.requests import asking

    async with asking(invocation, token) as ask:
        return await ask(method, path, content)


def _path(name: str) -> str:
    from urllib.parse import quote

    return f"/approvals/{quote(name, safe='')}"
