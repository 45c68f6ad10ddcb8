"""`carnet call`: say something to an agent and print what it answers."""

from typing import TYPE_CHECKING, Any

import click

from carnet.cli.invocation import (
    Command,
    Invocation,
    pass_invocation,
    to_json,
    visible,
    wait,
)

if TYPE_CHECKING:
    from carnet.cli.failures import GatewayError
    from carnet.cli.reach.request import CallOptions, Composed
    from carnet.errors import Unreachable
    from carnet.ports.world.http_client import HttpAnswer, HttpClient, Outbound

DONE = "[DONE]"
CUT_SHORT = "length", "content_filter"  # ends that the text alone does not show


@click.command(cls=Command)
@click.argument("address")
@click.argument("words", nargs=-1, metavar="[TEXT] [skill=NAME] [name=value] [name:=JSON]")
@click.option("--skill", metavar="NAME", help="The skill to ask for.")
@click.option("--stream", is_flag=True, help="Print the answer as it is written.")
@click.option("--as", "token", metavar="TOKEN", help="The token to call with, or @FILE.")
@click.option(
    "--dialect",
    type=click.Choice(["openai", "samvad", "a2a", "agents_api"]),
    help="What an http(s) ADDRESS speaks.",
)
@click.option("--model", metavar="NAME", help="The model to ask for at an http(s) ADDRESS.")
@click.option("--task", is_flag=True, help="Hand it over as a task, and wait for its end.")
@click.option("--no-wait", is_flag=True, help="Print the id of the task and do not wait for it.")
@click.option("--callback", metavar="URL", help="Have the end of the task told to this https URL.")
@click.option(
    "--delegate", metavar="TOKEN", help="Call for somebody: a delegation token (or FILE, or -)."
)
@click.option(
    "--voucher",
    metavar="VOUCHER",
    help="Pay with a voucher, or another payment that is taken there (or FILE, or -).",
)
@click.option("--dry-run", is_flag=True, help="Print the request this command would send.")
@click.option("--direct", is_flag=True, help="Send it to the peer itself, not to our gateway.")
@click.option(
    "--key", metavar="FILE", help="Sign a direct call with this key; made if there is none."
)
@click.option(
    "--budget",
    metavar="TERMS",
    help="The most it may spend, with all it calls: 0.50, or money=,calls=,tokens=,seconds=.",
)
@click.option(
    "--on-budget",
    type=click.Choice(["refuse", "ask"]),
    help="What to do when that is used up: refuse, or wait and ask who pays for more.",
)
@click.option("--run", metavar="ID", help="The run this call belongs to.")
@click.option(
    "--turn", metavar="ID", help="The turn; the same id with the same token gives the same answer."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    metavar="S",
    help="Seconds to wait for the whole answer (default: 600).",
)
@pass_invocation
def call(
    invocation: Invocation,
    /,
    address: str,
    words: tuple[str, ...],
    skill: str | None,
    token: str | None,
    **options: Any,
) -> int:
    """Call an agent.

    ADDRESS is the name of an agent here, @name@domain or agent://domain for one of a peer, or with
    --dialect the URL of an OpenAI-compatible endpoint, or of a SAMVAD, A2A or agents-api agent.
    TEXT is what to say; - reads it from standard input. A skill is asked for by name: skill=NAME,
    and what goes into it as name=value (text) or name:=value (JSON).

    The call goes through our gateway; one to a URL goes there from here. With --direct a call to a
    peer goes from here too, without a record at our gateway: agent:// signed with the key of our
    gateway, or with that of --key. --dry-run shows the request that would be sent, signed where it
    is, with the token as ***.

    With --task the agent takes it on, and goes on with it when this command has ended; 'carnet
    tasks' shows and cancels it. A task for an agent elsewhere, and a call with --delegate, go there
    from here, signed.
    """
    from carnet.cli.call.advice import explained
    from carnet.cli.call.arguments import read_words
    from carnet.cli.reach.request import CallOptions, check

    given = read_words(words, skill)
    asked = CallOptions(
        address=address,
        text=given.text,
        skill=given.skill,
        payload=given.payload,
        token=token,
        **{**options, "task": options["task"] or options["callback"] is not None},
    )
    asked.direct = asked.direct or _goes_there(invocation, asked)
    check(asked)
    if asked.stream and invocation.format == "json":
        asked.stream = False  # whole JSON is one value: there is nothing to show early
    with explained(asked):
        return wait(_call(invocation, asked))


def _goes_there(invocation: Invocation, asked: "CallOptions") -> bool:
    """Whether it is for an agent elsewhere, and of a kind that goes straight to it."""
    from carnet.cli.reach.recipient import find_own
    from carnet.core.people.address import is_agent_uri, is_handle

    is_named = is_agent_uri(asked.address) or is_handle(asked.address)
    return is_named and asked.goes_signed and find_own(invocation, asked.address) is None


async def _call(invocation: Invocation, asked: "CallOptions") -> int:
    from carnet.cli.reach.gateway import open_http
    from carnet.cli.reach.request import compose, describe
    from carnet.errors import ProviderTimeout, Unreachable

    if asked.is_signed or asked.is_a2a or asked.is_agents_api:
        return await _call_there(invocation, asked)
    async with open_http() as http, compose(invocation, asked, http) as (request, is_new):
        if asked.dry_run:
            page = describe(request)
            invocation.result(page, lambda: _as_http(page))
            return 0
        try:
            await _send(invocation, asked, http, (request, is_new))
        except ProviderTimeout as error:
            raise _too_late(asked) from error
        except Unreachable as error:
            if asked.is_url or asked.direct:
                raise _nobody_at(error) from error
            raise
    return 0


async def _call_there(invocation: Invocation, asked: "CallOptions") -> int:
    """Call an agent elsewhere by its card, from here."""
    from carnet.cli.call.a2a import call_a2a
    from carnet.cli.call.signed import call_signed
    from carnet.cli.reach.agents_api import call_agents_api
    from carnet.cli.reach.gateway import open_http, unreadable
    from carnet.errors import PeerAgentNotFound, PeerUnreachable, ProviderTimeout

    try:
        async with open_http() as http:
            call = call_a2a if asked.is_a2a else call_signed
            await (call_agents_api if asked.is_agents_api else call)(invocation, asked, http)
    except ProviderTimeout as error:
        raise _too_late(asked) from error
    except (PeerUnreachable, PeerAgentNotFound) as error:
        raise unreadable(error) from error
    return 0


async def _send(
    invocation: Invocation, asked: "CallOptions", http: "HttpClient", composed: "Composed"
) -> None:
    from carnet.cli.call.task_view import print_own_task
    from carnet.cli.reach.gateway import credential_of, decode, sending
    from carnet.runtime.peers.samvad_tasks import SECRET_HEADER

    begun: dict[str, Any] = {}
    request, is_new = composed
    async with sending(http, request, token_is_new=is_new) as answer:
        if asked.task:
            begun = {"webhook_secret": answer.header(SECRET_HEADER)} | decode(await answer.read())
        elif asked.stream:
            await _print_stream(invocation, request, answer)
        else:
            await _print_answer(invocation, answer, asked.skill)
    if asked.task:
        await print_own_task(invocation, asked, begun, credential_of(request, is_new=is_new))


def _too_late(asked: "CallOptions") -> "GatewayError":
    from carnet.cli.failures import GatewayError

    facts = {
        "code": "provider_timeout",
        "message": f"The whole answer did not come within {asked.timeout:g} s (--timeout).",
        "hint": "Wait longer with --timeout SECONDS. With --run and --turn the same call can be "
        "repeated without running twice.",
    }
    return GatewayError({**facts, "run": asked.run, "turn": asked.turn}, 504)


def _nobody_at(error: "Unreachable") -> "GatewayError":
    from carnet.cli.failures import GatewayError

    message = f"Nothing answers at {error.facts['url']}."
    hint = "Check the address; whoever runs what is there can tell whether it is up."
    return GatewayError({"code": error.code, "message": message, "hint": hint}, 503)


def _as_http(page: dict[str, Any]) -> str:
    head = [f"{page['method']} {page['url']}"]
    head += [f"{name}: {value}" for name, value in page["headers"].items()]
    return "\n".join([*head, "", to_json(page["body"], indent=2)])


async def _print_answer(invocation: Invocation, answer: "HttpAnswer", skill: str | None) -> None:
    from carnet.cli.output import text_of
    from carnet.cli.reach.gateway import decode

    page = decode(await answer.read())
    usage = page.get("usage") or {}
    invocation.result(page, lambda: visible(text_of(page, skill)))
    if invocation.format == "text":
        invocation.note(_summary(answer, usage, _end_of(page)))


async def _print_stream(invocation: Invocation, request: "Outbound", answer: "HttpAnswer") -> None:
    from carnet.cli.output import Growing, result_in
    from carnet.cli.reach.gateway import decode, read_events
    from carnet.errors import ProviderUnavailable

    usage: dict[str, Any] = {}
    result: dict[str, Any] | None = None
    ended, end = False, ""
    with Growing(holds=True) as growing:
        async for event in read_events(answer):
            if event.data == DONE:
                ended = True
                break
            chunk = decode(event.data)
            if chunk.get("error"):
                growing.flush()
            _refuse_error_frame(chunk, answer)
            usage, end = chunk.get("usage") or usage, _end_of(chunk) or end
            result = result_in(chunk) or result
            if invocation.format == "text":
                growing.say(_delta_of(chunk))
            else:
                click.echo(event.data)
        if invocation.format == "text":
            growing.end(result)
    if invocation.format == "text":
        invocation.note(_summary(answer, usage, end))
    if not ended:
        raise ProviderUnavailable(f"the stream of {request.url} ended without its last frame")


def _refuse_error_frame(chunk: dict[str, Any], answer: "HttpAnswer") -> None:
    from carnet.cli.failures import GatewayError
    from carnet.cli.reach.gateway import names_in

    if isinstance(chunk.get("error"), dict):
        click.echo()  # what was printed so far ends its line
        raise GatewayError({**chunk["error"], **names_in(answer)}, 502)


def _delta_of(chunk: dict[str, Any]) -> str:
    choices = chunk.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("content") or "")


def _end_of(page: dict[str, Any]) -> str:
    """Why an answer ended, if it or this chunk of it says so."""
    choices = page.get("choices") or [{}]
    return str(choices[0].get("finish_reason") or "")


def _summary(answer: "HttpAnswer", usage: dict[str, Any], end: str) -> str:
    from carnet.cli.reach.gateway import names_in

    words = [f"{word} {value}" for word, value in names_in(answer).items()]
    if usage.get("cost") is not None:
        words.append(f"cost {usage['cost']} {usage.get('currency') or ''}".rstrip())
    if end in CUT_SHORT:
        words.append(f"cut short ({end})")
    return "  ".join(words) or "The answer names no run."
