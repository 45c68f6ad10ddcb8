"""Refusals as pages: what happened, what it means, what to do next.

Law. The path alone decides that one is a page; twins are refused as the API refuses.
"""

from typing import Final

from carnet.console.shell import GUARDED, HTML, TWIN
from carnet.console.templates import Templates
from carnet.errors import CarnetError, SessionInvalid, TokenInvalid, TokenMissing
from carnet.guards.caller.session import SessionCookie
from carnet.wire.dialects.dialect import Reply

ROOT: Final = b"/console"
ASSETS: Final = b"/console/static/"
# htmx shows it where there is room for it, not where the answer would have gone.
_SHOWN: Final = [
    (b"hx-retarget", b"#notice"),
    (b"hx-reswap", b"innerHTML"),
    (b"hx-reselect", b"#refusal"),
]
_REPLACED: Final = frozenset({b"content-type", b"content-length", b"cache-control"})


class RefusalPages:
    """Writes them."""

    def __init__(self, templates: Templates, cookie: SessionCookie) -> None:
        """`cookie` is taken from a browser whose session is over."""
        self._templates = templates
        self._cookie = cookie

    def __call__(self, error: CarnetError, path: bytes, usual: Reply) -> Reply:
        """The page of a refusal; the `usual` answer where a path is asked for data."""
        if not is_page(path):
            return usual
        is_unknown = isinstance(error, TokenMissing | SessionInvalid | TokenInvalid)
        page = {
            "title": "Sign in" if is_unknown else "That did not work",
            "code": error.code,
            "message": error.safe_text,
            "hint": error.hint,
            "is_unknown": is_unknown,
            "is_wrong": not isinstance(error, TokenMissing),
        }
        kept = [field for field in usual.headers if field[0] not in _REPLACED]
        headers = [*kept, HTML, *GUARDED, *_SHOWN]
        if isinstance(error, SessionInvalid):
            headers.append(self._cookie.write(None))
        return Reply(usual.status, headers, self._templates.write("refusal.html", page))


def is_page(path: bytes) -> bool:
    """Whether people look at what is there."""
    if path != ROOT and not path.startswith(ROOT + b"/"):
        return False
    return not path.endswith(TWIN) and not path.startswith(ASSETS)
