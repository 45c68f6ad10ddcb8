"""What differs from one run to the next, taken out of what a page prints and of what is printed."""

import re
from collections.abc import Mapping
from typing import Final

from carnet.testing.address import Address

_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_MASKS: Final = [
    (re.compile(pattern), name)
    for pattern, name in (
        (rf"\b(conv|turn|cnv|msg)_{_UUID}", r"\1_ID"),
        (rf"\b{_UUID}\b", "ID"),
        (r"\b(chatcmpl)-[0-9a-f]{24}\b", r"\1-ID"),
        (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[0-9a-f]{16}\b", "HEX"),
        (r"\bk-[0-9a-f]{12}\b", "KID"),
        (r"(?<![\w/+])[\w/+]{86}==|(?<![\w/+])[\w/+]{43}=", "BASE64"),
        (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT\b", "DATE"),
        (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", "TIME"),
        (r'(created"?[:=])\d+', r"\1TIME"),
    )
]


def masked(text: str, addresses: Mapping[str, Address] | None = None) -> list[str]:
    """The lines of a text without ids and times, and with the ports that the page has."""
    for written, address in (addresses or {}).items():
        text = re.sub(rf"\b{address.port}\b", written, text)
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]
