"""Pages that are watched for anything of what was stored that is more than text."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, Request

from carnet.console.api import segment
from carnet.http.exchange import Row
from tests.browser.hostile.scene import MARK, Hostile
from tests.console.pages import path_of

# Whatever comes into the page from its first element on, also what goes away again.
_WATCH = f"""
window.found = [];
Object.defineProperty(window, "taken", {{ set: (by) => window.found.push(`script ${{by}} ran`) }});
document.addEventListener("securitypolicyviolation", (event) => {{
  window.found.push(`${{event.violatedDirective}} stopped ${{event.blockedURI}} ${{event.sample}}`);
}});
const isEvil = (node) => node.nodeType === 1
  && (node.hasAttribute("{MARK}") || node.querySelector("[{MARK}]") !== null);
new MutationObserver((changes) => {{
  for (const change of changes) for (const node of change.addedNodes) {{
    if (isEvil(node)) window.found.push(`element ${{node.outerHTML.slice(0, 200)}}`);
  }}
}}).observe(document, {{ childList: true, subtree: true }});
"""
_ATTRIBUTES = """() => {
  const found = [];
  const links = new Set(["href", "src", "action", "formaction", "xlink:href"]);
  for (const each of document.querySelectorAll("*")) {
    for (const { name, value } of each.attributes) {
      const runs = /^(on|hx-on)/.test(name) || name === "style";
      if (runs || (links.has(name) && /^\\s*(javascript|data|https?):/i.test(value))) {
        found.push(`${name}=${value}`);
      }
    }
  }
  return found;
}"""
_TEXT = """() => [
  document.documentElement.textContent,
  ...[...document.querySelectorAll("*")].flatMap((each) =>
    [...each.attributes].map((one) => one.value)),
].join(" ")"""


class Opened:
    """Pages that somebody who was written to looks at."""

    def __init__(self, page: Page, hostile: Hostile) -> None:
        self.page = page
        self.url = hostile.acme.url
        self.noted: list[str] = []
        page.on("pageerror", lambda error: self.noted.append(f"error {error}"))
        page.on("dialog", lambda dialog: self.noted.append(f"dialog {dialog.message}"))
        page.on("request", self._asked)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(f"{self.url}/") or request.url.startswith(f"{self.url}/evil"):
            self.noted.append(f"request {request.url}")

    def open(self, path: str) -> Page:
        """Open a page, and look at it."""
        self.page.goto(self.url + path)
        self.check(path)
        return self.page

    def check(self, what: str) -> None:
        """Nothing of what was stored is more than text."""
        assert self.page.evaluate("window.found") == [], what
        assert self.page.evaluate(_ATTRIBUTES) == [], what
        assert self.page.locator(f"[{MARK}]").count() == 0, what
        assert self.noted == [], what

    def shows_it(self) -> bool:
        """Whether what was stored stands there, as text or as the value of an attribute."""
        text: str = self.page.evaluate(_TEXT)
        return f"{MARK} src=/evil" in text or f"{MARK}/src=/evil" in text


@contextmanager
def looking(chromium: Browser, hostile: Hostile) -> Iterator[Opened]:
    """Somebody who has signed in, and whose browser is watched."""
    context = chromium.new_context()
    context.add_init_script(_WATCH)
    name, _, value = hostile.browser.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": hostile.acme.url}])
    try:
        yield Opened(context.new_page(), hostile)
    finally:
        context.close()


def paths_of(row: Row, hostile: Hostile) -> list[str]:
    """What a row is asked for; one about a run, for each of them that a browser can ask for."""
    names = {name: segment(value) for name, value in hostile.names.items()}
    if "{run}" not in row.path:
        return [path_of(row, names)]
    found = []
    for run in hostile.runs:
        if run == "..":
            continue  # which a browser takes for the folder above
        at = path_of(row, {**names, "run": segment(run).replace(".json", "%2Ejson")})
        found.append(re.sub(r"turn=x$", f"turn={segment(hostile.turns[run])}", at))
    return found
