"""A person with a token, and what she and others send about her hooks and schedules."""

import hmac
import itertools
import json
from typing import Any

from carnet.testing.wait import until
from tests.support.http import HeaderList, Reply, request
from tests.support.organisation import Organisation

BODY = json.dumps({"id": "evt_1", "order": {"id": "o_1"}}).encode()
numbers = itertools.count()


class Owner:
    """Somebody with hooks and schedules."""

    def __init__(self, acme: Organisation, *scopes: str) -> None:
        self.acme, self.name = acme, f"person-{next(numbers)}"
        acme.carnet("people", "add", self.name)
        chosen = [word for scope in scopes for word in ("--scope", scope)]
        self.token = acme.new_token(self.name, "--person", self.name, *chosen)

    def get(self, path: str) -> Reply:
        return self.acme.get(path, token=self.token)

    def post(self, path: str, page: Any = None) -> Reply:
        fields = [("authorization", f"Bearer {self.token}"), ("content-type", "application/json")]
        body = b"" if page is None else json.dumps(page).encode()
        return request("POST", self.acme.url + path, fields, body)

    def hook(self, name: str = "orders", **more: Any) -> dict[str, Any]:
        asked = {"name": name, "agent": "echo", "scheme": "github", **more}
        made = self.post("/hooks", asked)
        assert made.status == 201, made.json
        return dict(made.json)

    def schedule(self, name: str = "digest", **more: Any) -> dict[str, Any]:
        asked = {"name": name, "agent": "echo", "cron": "@yearly", "message": "Write it.", **more}
        made = self.post("/schedules", asked)
        assert made.status == 201, made.json
        return dict(made.json)

    def ended(self, path: str, most: int = 1) -> list[dict[str, Any]]:
        """What became of the firings of a hook or schedule, when all of them have ended."""

        def look() -> list[dict[str, Any]]:
            recent = self.get(path).json["recent"]
            has_all = len(recent) >= most and all(each["state"] != "due" for each in recent)
            return list(recent) if has_all else []

        return until(look)


def signed(secret: str, body: bytes) -> list[tuple[str, str]]:
    digest = hmac.new(secret.encode(), body, "sha256").hexdigest()
    return [("x-hub-signature-256", f"sha256={digest}")]


def send(hook: dict[str, Any], body: bytes = BODY, headers: HeaderList | None = None) -> Reply:
    fields = signed(hook["secret"], body) if headers is None else list(headers)
    return request("POST", hook["address"], [("content-type", "application/json"), *fields], body)
