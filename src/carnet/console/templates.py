"""Pages from templates: the one door to Jinja.

Law 1. Everything is escaped, whoever wrote it; no filter here makes text safe, and no template
       asks for that (`tests/console` looks).
Law 2. A name that a page does not have is an error, and no empty place.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from carnet.console.words import FILTERS

FOLDER: Final = Path(__file__).with_name("templates")


class Templates:
    """Writes pages."""

    def __init__(self, asset: Callable[[str], str]) -> None:
        """`asset` tells where a file is found that a page is drawn with."""
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals["asset"] = asset

    def write(self, template: str, page: Mapping[str, Any]) -> bytes:
        """One page, or a part of one."""
        return self._environment.get_template(template).render(page).encode()
