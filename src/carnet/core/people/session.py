"""A session: somebody who has signed in, as it is kept. It stands for one token of hers.

Law 1. It is never more than that token: it has its rights, bills its account and ends with it.
Law 2. It ends when nobody has used it for a while (`until`), and at `last` whoever uses it.
Law 3. A link to sign in with is a session that nobody has begun: it becomes one once.
"""

from msgspec import Struct


class PersonSession(Struct, frozen=True, kw_only=True):
    """One session, or the link that is to become one."""

    n: int
    person: int
    token: int  # the number of the token that it stands for
    created: int
    begun: int | None  # None: of a link that nobody has used
    used: int | None  # when it was last used, within a minute
    until: int  # when it ends unless it is used before
    last: int  # when it ends in any case
    device: str = ""  # what the browser calls itself, as it was signed in
    ended: int | None = None

    def is_live(self, now: int) -> bool:
        """Begun and not over."""
        return self.begun is not None and self.ended is None and self.until > now


class SessionBounds(Struct, frozen=True, kw_only=True):
    """How long sessions and links last, and how many one person may have."""

    idle_us: int
    most_us: int
    link_us: int
    per_person: int
