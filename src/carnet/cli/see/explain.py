"""`carnet explain`: what a code means, and why a call was admitted."""

import re
from typing import TYPE_CHECKING, Any, Final, Never

import click

from carnet.cli.invocation import Command, Invocation, pass_invocation, table, wait
from carnet.cli.see.runs import LAST

if TYPE_CHECKING:
    from carnet.errors import CarnetError

_STATUS: Final = re.compile(r"[1-5][0-9]{2}", re.ASCII)
_LETTERS: Final = re.compile(r"[a-z_]+", re.ASCII | re.IGNORECASE)


@click.command(cls=Command)
@click.argument("word", metavar="[CODE|STATUS|RUN]", required=False)
@click.argument("turn", required=False, metavar="[TURN]")
@pass_invocation
def explain(invocation: Invocation, word: str | None, turn: str | None) -> None:
    """Say what an error CODE means and what to do about it, or why a RUN was admitted.

    Alone it lists all codes, and with an HTTP STATUS those that come with it. Of a run, each guard
    is listed with what it found; TURN picks one of its turns. The beginning of an id is enough if
    only one of the newest runs begins so, and 'last' is the newest. A word that is a code or a
    status is one, also if a run is called so: name its turn as well.
    """
    if word is None or (turn is None and _STATUS.fullmatch(word)):
        _list_codes(invocation, word)
    elif turn is None and _is_code(word):
        _explain_code(invocation, word)
    elif turn is None and word != LAST and _LETTERS.fullmatch(word):
        _explain_letters(invocation, word)
    else:
        _explain_run(invocation, word, turn)


def _list_codes(invocation: Invocation, status: str | None) -> None:
    """List the codes, or those that come with one status."""
    from carnet.errors import BY_CODE, UsageInvalid
    from carnet.wire.dialects.samvad import MEANINGS, STATUSES

    own = [
        {"code": code, "status": kind.status, "meaning": _first(kind.__doc__ or "")}
        for code, kind in sorted(BY_CODE.items())
    ]
    samvad = [
        {"code": word, "status": status, "meaning": _first(MEANINGS[word][0])}
        for word, status in STATUSES.items()
    ]
    if status is not None:
        own, samvad = (
            [row for row in rows if str(row["status"]) == status] for rows in (own, samvad)
        )
    if not own and not samvad:
        raise UsageInvalid(
            reason=f"No code comes with the status {status}.",
            fix="'carnet explain' lists them all.",
        )
    page = {"codes": own, "samvad": samvad}
    invocation.result(page, lambda: _codes_text(own, samvad), [*own, *samvad])


def _first(text: str) -> str:
    """The first sentence of what a code means."""
    return _paragraphs(text).partition("\n\n")[0].partition(". ")[0].rstrip(".") + "."


def _codes_text(own: list[dict[str, Any]], samvad: list[dict[str, Any]]) -> str:
    rows = [[str(row[name]) for name in ("code", "status", "meaning")] for row in (*own, *samvad)]
    text = table(rows, ["CODE", "HTTP", "MEANING"])
    return f"{text}\nThose in capitals are SAMVAD's. What to do about one: carnet explain CODE"


def _is_code(word: str) -> bool:
    from carnet.errors import BY_CODE
    from carnet.wire.dialects.samvad import STATUSES

    return word.upper() in STATUSES or word.lower() in BY_CODE


def _explain_letters(invocation: Invocation, word: str) -> None:
    """Explain the run that is called so; if there is none, it was meant to be a code."""
    from carnet.cli.failures import GatewayError
    from carnet.errors import CarnetError

    try:
        _explain_run(invocation, word, None)
    except GatewayError as error:
        _refuse_code(word, str(error))
    except CarnetError as error:
        _refuse_code(word, f"{error.safe_text} {error.next_step}")


def _explain_run(invocation: Invocation, run: str, turn: str | None) -> None:
    from carnet.cli.reach.pages import GROUNDS
    from carnet.cli.see.runs import read_run
    from carnet.errors import UsageInvalid

    page = wait(read_run(invocation, run, GROUNDS))
    if turn is not None:
        chosen = [each for each in page["turns"] if each["turn"].startswith(turn)]
        if not chosen:
            known = ", ".join(each["turn"] for each in page["turns"])
            raise UsageInvalid(
                reason=f"'{turn}' is no turn of {page['run']}.", fix=f"Its turns: {known}."
            )
        page = {**page, "turns": chosen}
    invocation.result(page, lambda: "\n\n".join(map(_grounds_text, page["turns"])))


def _grounds_text(turn: dict[str, Any]) -> str:
    from carnet.cli.see.tree import waits_lines

    title = f"{turn['turn']}  {turn['agent']}  {turn['state']}  by {turn['actor']}"
    title = "\n  ".join([title, *waits_lines(turn)])
    if not turn["grounds"]:
        return f"{title}\n  admitted by a former version, which did not say why"
    width = max(len(ground["guard"]) for ground in turn["grounds"])
    lines = [f"  {ground['guard']:<{width}}  {ground['found']}" for ground in turn["grounds"]]
    return "\n".join([title, *lines])


def _explain_code(invocation: Invocation, code: str) -> None:
    from carnet.errors import kinds_of
    from carnet.wire.dialects.samvad import STATUSES

    word = code.upper()
    kinds = kinds_of(code.lower())
    if word in STATUSES and (code == word or not kinds):
        page = _word_page(word)
        invocation.result(page, lambda: _word_explanation(page))
        return
    page, *others = map(_code_page, kinds)
    if others:  # clients are sent the same code for these
        page["also"] = others
    apart = "\n\nOr, if what is asked for stands beside it, as 'interrupt':\n\n"
    invocation.result(page, lambda: apart.join(map(_explanation, [page, *others])))


def _code_page(kind: "type[CarnetError]") -> dict[str, Any]:
    from carnet.wire.dialects.samvad import REFUSALS

    return {
        "code": kind.code,
        "status": kind.status,
        "retryable": kind.retryable,
        "meaning": _paragraphs(kind.__doc__ or ""),
        "message": kind.template,
        "hint": kind.hint,
        "samvad": dict(zip(("status", "code"), REFUSALS[kind], strict=True)),
    }


def _word_page(word: str) -> dict[str, Any]:
    """One of the nine words of SAMVAD, and which of our own codes it stands for."""
    from carnet.wire.dialects.samvad import MEANINGS, REFUSALS, STATUSES

    meaning, hint = MEANINGS[word]
    own = [kind.code for kind, (_, known) in REFUSALS.items() if known == word]
    return {
        "code": word,
        "status": STATUSES[word],
        "meaning": meaning,
        "hint": hint,
        "carnet_codes": sorted(own),
    }


def _word_explanation(page: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"{page['code']}  (SAMVAD; HTTP {page['status']} as a rule)",
            "",
            page["meaning"],
            "",
            f"Do this:  {page['hint']}",
            f"A Carnet says more in its header carnet-code: {', '.join(page['carnet_codes'])}",
        ]
    )


def _refuse_code(code: str, as_run: str) -> Never:
    from difflib import get_close_matches

    from carnet.errors import BY_CODE, UsageInvalid

    whole = [known for known in BY_CODE if code.lower() in known]
    near = whole or get_close_matches(code.lower(), BY_CODE, n=1, cutoff=0.5)
    raise UsageInvalid(
        reason=f"'{code}' is no code of this gateway."
        + (f" Did you mean '{near[0]}'?" if near else "")
        + f" Of a run that is called so: {as_run}",
        fix="'carnet explain' lists all codes.",
    )


def _paragraphs(text: str) -> str:
    import inspect

    blocks = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(block.split()) for block in blocks)


def _explanation(page: dict[str, Any]) -> str:
    again = "may be sent again as it is" if page["retryable"] else "will be refused again as it is"
    samvad = page["samvad"]
    return "\n".join(
        [
            f"{page['code']}  (HTTP {page['status']}; the same request {again})",
            f"To callers that sign: HTTP {samvad['status']} {samvad['code']}",
            "",
            page["meaning"],
            "",
            f"It says:  {page['message']}",
            f"Do this:  {page['hint']}",
        ]
    )
