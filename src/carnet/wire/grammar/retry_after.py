"""How long a peer asks us to wait: the header Retry-After, in either of its forms.

Law. A date is measured from the answer's own, so that no clock is needed. What is not in its form,
or longer than eleven days, says nothing.
"""

import re
from email.utils import parsedate_to_datetime
from typing import Final

MOST_WAIT_SECONDS: Final = 999_999  # eleven days; more is no waiting time

# A year below 1000 would be read as one of our century.
_DATE: Final = re.compile(
    r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} [1-9]\d{3} \d\d:\d\d:\d\d GMT", re.ASCII
)
_SECONDS: Final = re.compile(r"\d{1,6}", re.ASCII)


def read_wait(text: str | None, date: str | None) -> int | None:
    """Whole seconds; `date` is the Date header of the same answer."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text):
        return int(text)
    then, now = _read_date(text), _read_date(date or "")
    if then is None or now is None or then - now > MOST_WAIT_SECONDS:
        return None
    return max(then - now, 0)


def _read_date(text: str) -> int | None:
    """An HTTP date, in seconds since the epoch."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return int(parsedate_to_datetime(text).timestamp())
    except ValueError:  # the 31st of February
        return None
