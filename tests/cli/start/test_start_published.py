"""What a gateway publishes as its address: one that can be used, or it says what it needs."""

import json
from pathlib import Path

import pytest

from carnet.config import load
from tests.cli.conftest import Cli
from tests.cli.start.test_start_serve import serving
from tests.support.http import request

EVERYWHERE = "0.0.0.0"  # noqa: S104  what a person types


def test_a_gateway_that_listens_everywhere_publishes_an_address_that_can_be_used(
    home: Path,
) -> None:
    with serving(home, "--host", EVERYWHERE, "--port", "0") as (process, output):
        url = (home / "var" / "gateway.url").read_text().strip()
        card = request("GET", f"{url}/.well-known/agent.json").json
        assert card["url"] == url
        assert EVERYWHERE not in json.dumps(card)
        assert "reach it at no address that we know" in output
        assert "[gateway] public_url" in output
        process.terminate()
        out, _ = process.communicate(timeout=15)
    warned = [json.loads(line) for line in out.splitlines() if "public_url" in line]
    assert [(line["level"], line["path"]) for line in warned] == [("warning", url)]


def test_a_gateway_that_knows_where_it_is_reached_says_nothing_more(home: Path) -> None:
    config = home / "carnet.toml"
    known = '\npublic_url = "https://gw.acme.example"\n[store]'
    config.write_text(config.read_text().replace("\n[store]", known, 1))
    with serving(home, "--host", EVERYWHERE, "--port", "0") as (_, output):
        url = (home / "var" / "gateway.url").read_text().strip()
        card = request("GET", f"{url}/.well-known/agent.json").json
    assert card["url"] == "https://gw.acme.example"
    assert "no address that we know" not in output


@pytest.mark.parametrize(
    ("host", "url"), [(EVERYWHERE, "http://127.0.0.1"), ("::", "http://[::1]")]
)
def test_the_doctor_says_that_a_public_url_is_needed(
    cli: Cli, home: Path, port: int, host: str, url: str
) -> None:
    config = home / "carnet.toml"
    config.write_text(config.read_text().replace('host = "127.0.0.1"', f'host = "{host}"', 1))
    assert load(config, {}).gateway.public_url == f"{url}:{port}"
    checks = cli("doctor", "--format", "json").page["checks"]
    (found,) = [check for check in checks if check["what"] == "address"]
    assert found["status"] == "warn"
    assert found["fix"].endswith("[gateway] public_url")
