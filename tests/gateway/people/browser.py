"""A browser, as far as signing in needs one: it keeps a cookie and sends it."""

import json
import re
from itertools import count
from typing import Any

from tests.support.http import HeaderList, Reply, chat_body, request
from tests.support.organisation import Organisation

numbers = count(1)


class Browser:
    """Somebody at a gateway."""

    def __init__(self, acme: Organisation) -> None:
        self.acme = acme
        self.cookie = ""
        self.csrf = ""

    def send(
        self, method: str, path: str, body: bytes | None = None, fields: HeaderList = ()
    ) -> Reply:
        """Ask with what is kept; what the answer has it keep is kept."""
        own = [("cookie", f"theme=dark; {self.cookie}")] if self.cookie else []
        named = {name for name, _ in fields}
        if self.csrf and "x-csrf-token" not in named:
            own.append(("x-csrf-token", self.csrf))
        if body is not None and "content-type" not in named:
            own.append(("content-type", "application/json"))
        reply = request(method, self.acme.url + path, [*own, *fields], body)
        if "set-cookie" in reply.headers:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
        return reply

    def post(self, path: str, page: Any = None) -> Reply:
        return self.send("POST", path, b"" if page is None else json.dumps(page).encode())

    def by_token(self, token: str) -> Reply:
        reply = self.send("POST", "/session", fields=[("authorization", f"Bearer {token}")])
        return self._in(reply)

    def by_code(self, code: str) -> Reply:
        return self._in(self.post("/session", {"code": code}))

    def _in(self, reply: Reply) -> Reply:
        if reply.status == 201:
            self.csrf = reply.json["csrf"]
        return reply

    def press(self, link: str, fields: HeaderList = ()) -> Reply:
        """Open a link, and press the button of its page."""
        page = self.send("GET", link.removeprefix(self.acme.url))
        assert page.status == 200, page.body
        found = re.search(rb'name="code" value="([^"]+)"', page.body)
        assert found is not None
        form = ("content-type", "application/x-www-form-urlencoded")
        return self.send("POST", "/sign-in", b"code=" + found[1], [form, *fields])

    def chat(self, text: str = "hi", model: str = "paid") -> Reply:
        return self.send("POST", "/v1/chat/completions", chat_body(text, model))


class Somebody:
    """A person with a token."""

    def __init__(self, acme: Organisation, *options: str) -> None:
        self.acme = acme
        self.name = f"guest{next(numbers)}"
        acme.carnet("people", "add", self.name, *options)
        self.token = acme.new_token(f"{self.name}-laptop", "--person", self.name)

    def link(self) -> str:
        return str(self.acme.json("people", "sign-in", self.name)["link"])

    def code(self) -> str:
        return self.link().partition("code=")[2]

    def browser(self) -> Browser:
        """One in which she has signed in."""
        browser = Browser(self.acme)
        assert browser.by_token(self.token).status == 201
        return browser
