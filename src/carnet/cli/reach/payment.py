"""The payment that a command brings along: a voucher, in its text or in a file.

Law. It is shown nowhere: what is wrong with it is told without it.
"""

import os
import sys
from pathlib import Path

from carnet.core.people.identity import Secret
from carnet.errors import UsageInvalid
from carnet.wire.travel.payment import MOST_BYTES, X402
from carnet.wire.travel.voucher import PREFIX


def read_given(text: str) -> Secret:
    """A voucher: its text, the file that holds it (also as @FILE), or - for standard input."""
    if text == "-":
        return _formed(sys.stdin.read(MOST_BYTES), "standard input")
    if text.startswith(PREFIX):
        return Secret(text.strip())
    file = Path(text.removeprefix("@")).expanduser()
    try:
        with file.open() as opened:
            return _formed(opened.read(MOST_BYTES), f"'{file}'")
    except (OSError, UnicodeDecodeError, ValueError):
        raise UsageInvalid(
            reason="That is no voucher, and no file that can be read.",
            fix="Give the voucher itself, the file that holds it, or - to read it.",
        ) from None


def brought(option: str | None) -> Secret | None:
    """The payment of a call: that of `--voucher`, else of CARNET_VOUCHER."""
    text = option or os.environ.get("CARNET_VOUCHER")
    if not text:
        return None
    if text.startswith(X402):  # of another kind, which a gateway may have a verifier for
        return Secret(text.strip())
    return read_given(text)


def _formed(text: str, where: str) -> Secret:
    found = text.strip()
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise UsageInvalid(
            reason=f"There is no voucher in {where}.",
            fix="Ask for one: carnet vouchers issue AUDIENCE AMOUNT, at who is to pay.",
        )
    return Secret(found)
