"""The tables of the reference pages, made of what the program itself knows.

`python -m tests.docs.tables` writes them into the pages; a test says when that is due.
"""

import re
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, Struct

from carnet.cli.failures import MEANINGS, REFUSED, exit_code
from carnet.config import SecretRef
from carnet.config.changes import NEEDS_RESTART
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.config.sources import docs_of
from carnet.core.money.amount import format_amount
from carnet.errors import BY_CODE, CarnetError, ConfigInvalid, Unreachable, UsageInvalid
from carnet.wire.dialects import samvad
from carnet.wire.dialects.a2a.extensions import EXTENSIONS
from tests.docs.reference.llms import LLMS, llms_text
from tests.docs.reference.metrics import metrics_table
from tests.docs.reference.surface import commands_table, endpoints_table
from tests.interop.matrix.carried import ASKED_IN, CALLED_IN, FEATURES, NAMES, carries
from tests.requirements.rows import Row
from tests.requirements.test_rows import TABLES

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = (
    DOCS / "configuration.md",
    DOCS / "http.md",
    DOCS / "command-line.md",
    DOCS / "dialects" / "samvad.md",
    DOCS / "dialects" / "pairs.md",
    DOCS / "a2a" / "extensions.md",
    DOCS / "requirements.md",
    DOCS / "operations" / "metrics.md",
    DOCS / "reference" / "command-line.md",
    DOCS / "reference" / "endpoints.md",
)
AT_THE_TERMINAL: Final = {ConfigInvalid, UsageInvalid, Unreachable}
AMOUNTS: Final = {"price", "price_in", "price_out", "credit", "max_cost"}
_TABLE: Final = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table_of(section: str, kind: type[Struct]) -> str:
    """A section as a table: its keys, their defaults, what each means, which need a restart."""
    docs = docs_of(kind)
    needs = NEEDS_RESTART.get(section, frozenset())
    rows = [
        f"| `{field.name}` | {_default(field.name, field.default)} | {docs[field.name]}"
        f"{' *Needs a restart.*' * (field.name in needs)} |"
        for field in msgspec.structs.fields(kind)
    ]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows, ""])


def _default(name: str, value: Any) -> str:
    if value is NODEFAULT:
        return "needed"
    if value is None:
        return "not set"
    if isinstance(value, SecretRef):
        return f"`{value}`"
    if name in AMOUNTS:
        value = format_amount(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{msgspec.json.encode(value).decode()}`"


def errors_table() -> str:
    """Every code that a gateway may answer with."""
    again = {True: "yes", False: "no"}
    rows = [
        f"| {kind.status} | {_code(kind)} | {again[kind.retryable]} | {_meaning(kind)} |"
        for kind in sorted(BY_CODE.values(), key=lambda kind: (kind.status, kind.code))
        if kind not in AT_THE_TERMINAL
    ]
    head = ["| status | code | may be repeated | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def samvad_table() -> str:
    """Which of our codes are told by each of SAMVAD's nine."""
    codes: dict[tuple[int, str], list[str]] = {}
    for kind, row in samvad.REFUSALS.items():
        if kind not in AT_THE_TERMINAL:
            codes.setdefault(row, []).append(f"`{kind.code}`")
    order = sorted(codes, key=lambda row: (list(samvad.STATUSES).index(row[1]), row[0]))
    rows = [f"| `{code}` | {status} | {', '.join(codes[status, code])} |" for status, code in order]
    return "\n".join(["| code | status | `carnet-code` |", "|---|---|---|", *rows, ""])


def extensions_table() -> str:
    """Every extension of A2A that is known, by what it is known, and what becomes of it."""
    head = ["| extension | URIs and keys of metadata | read | written | believed |"]
    rows = [
        f"| {row.name} | {_names(row.uris, row.keys)} | {row.reads} | {row.writes} "
        f"| {row.believes} |"
        for row in EXTENSIONS
    ]
    return "\n".join([*head, "|---|---|---|---|---|", *rows, ""])


def _names(uris: tuple[str, ...], keys: tuple[str, ...]) -> str:
    return "<br>".join([f"`{name}`" for name in dict.fromkeys((*uris, *keys))])


def features_table() -> str:
    """What is looked at in every pair of dialects."""
    rows = [f"| {name.replace('_', ' ')} | {what} |" for name, what in FEATURES.items()]
    return "\n".join(["| word | what is meant |", "|---|---|", *rows, ""])


def pairs_table() -> str:
    """What is lost between a caller of one dialect and an agent of another."""
    head = f"| asked in | {' | '.join([f'to {NAMES[each]}' for each in CALLED_IN])} |"
    rows = [
        f"| {NAMES[asked_in]} | {' | '.join([_lost(asked_in, each) for each in CALLED_IN])} |"
        for asked_in in ASKED_IN
    ]
    return "\n".join([head, "|---" * (1 + len(CALLED_IN)) + "|", *rows, ""])


def _lost(asked_in: str, called_in: str) -> str:
    carried = carries(asked_in, called_in)
    lost = [name.replace("_", " ") for name in FEATURES if name not in carried]
    return ", ".join(lost) or "nothing"


def requirements_table() -> str:
    """Every sentence that Carnet is held to, by design, and what holds it."""
    parts = []
    for name, rows in TABLES.items():
        due = sum(row.due is not None for row in rows)
        counted = f"{len(rows)} sentences" + (f", {due} of them due" if due else "")
        head = [f"## {name}", "", f"{counted}.", "", "| id | sentence | source | held by |"]
        parts += [*head, "|---|---|---|---|", *[_requirement(row) for row in rows], ""]
    return "\n".join(parts)


def _requirement(row: Row) -> str:
    held = [f"`{name}`" for name in sorted({test.partition("::")[0] for test in row.tests})]
    if row.divergence is not None:
        held.insert(0, f"departs ({row.divergence.ruling}): {row.divergence.reason}")
    if row.due is not None:
        held.insert(0, f"due: {row.due}")
    cells = [f"`{row.id}`", row.sentence, row.source, "<br>".join(held)]
    return f"| {' | '.join([cell.replace('|', chr(92) + '|') for cell in cells])} |"


def exits_table() -> str:
    """What a command ends with, and by which codes."""
    codes: dict[int, list[str]] = {}
    for kind in BY_CODE.values():
        codes.setdefault(exit_code(kind), []).append(f"`{kind.code}`")
    codes[REFUSED] = ["every other code"]
    rows = [
        f"| {number} | {meaning} | {', '.join(sorted(codes.get(number, [])))} |"
        for number, meaning in MEANINGS.items()
    ]
    return "\n".join(["| exit | meaning | codes |", "|---|---|---|", *rows, ""])


def _code(kind: type[CarnetError]) -> str:
    """The name of an error, and the code that clients are sent where that is another's."""
    return f"`{kind.code}`" + (f", sent as `{kind.sent_as}`" if kind.sent_as else "")


def _meaning(kind: type[CarnetError]) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def filled(page: str) -> str:
    """A page with its tables made anew."""
    tables = {name: table_of(name, kind) for name, kind in (SECTIONS | FAMILIES).items()}
    tables["errors"] = errors_table()
    tables["samvad"] = samvad_table()
    tables["exits"] = exits_table()
    tables["extensions"] = extensions_table()
    tables["features"] = features_table()
    tables["requirements"] = requirements_table()
    tables["pairs"] = pairs_table()
    tables["metrics"] = metrics_table()
    tables["commands"] = commands_table()
    tables["endpoints"] = endpoints_table() if "<!-- table endpoints -->" in page else ""
    return _TABLE.sub(lambda found: found[1] + tables[found[2]] + found[3], page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
    LLMS.write_text(llms_text())
