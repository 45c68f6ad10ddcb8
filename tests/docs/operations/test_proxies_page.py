"""What the page about Caddy and nginx says is what the gateway has."""

from pathlib import Path

from carnet.config import load
from carnet.config.limits import MIB, Limits
from carnet.config.settings import AgentSettings
from tests.docs.test_quickstart import ROOT, blocks_of
from tests.support.http import request
from tests.support.organisation import Organisation

PAGE = ROOT / "docs" / "operations" / "proxies.md"
TEXT = PAGE.read_text()
BLOCKS = {block.language: block.text for block in blocks_of(PAGE)}


def test_its_settings_are_read_and_name_where_the_proxies_lead(tmp_path: Path) -> None:
    file = tmp_path / "carnet.toml"
    agent = '[agents.echo]\ntarget = "agents:echo"\n'
    file.write_text(BLOCKS["toml"] + agent)
    gateway = load(file, {}).gateway
    assert gateway.trusted_proxies == ("127.0.0.1/32",)
    name = gateway.public_url.removeprefix("https://")
    for proxy in ("caddyfile", "nginx"):
        assert name in BLOCKS[proxy]
        assert f"{gateway.host}:{gateway.port}" in BLOCKS[proxy]


def test_the_bodies_that_pass_the_proxies_are_those_that_the_gateway_takes() -> None:
    mib = Limits().chat_body_bytes // MIB
    assert f"`chat_body_bytes` pass ({mib} MiB" in TEXT
    assert f"max_size {mib}MiB" in BLOCKS["caddyfile"]
    assert f"client_max_body_size {mib}m;" in BLOCKS["nginx"]
    assert Limits().body_bytes <= Limits().chat_body_bytes


def test_the_proxies_wait_for_as_long_as_an_agent_may_take() -> None:
    seconds = int(AgentSettings().timeout)
    assert f"`timeout`, {seconds} seconds" in TEXT
    assert f"proxy_read_timeout {seconds}s;" in BLOCKS["nginx"]


def test_nginx_keeps_the_host_speaks_1_1_and_does_not_buffer() -> None:
    for line in (
        "proxy_http_version 1.1;",
        "proxy_set_header Host $http_host;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        'proxy_set_header Forwarded "";',
        "proxy_buffering off;",
    ):
        assert line in BLOCKS["nginx"]
    assert "flush_interval -1" in BLOCKS["caddyfile"]


def test_the_readiness_that_the_page_names_is_told_to_anybody(tmp_path: Path) -> None:
    assert "ask each for `/readyz`" in TEXT
    acme = Organisation(tmp_path, "acme.example")
    acme.start()
    assert request("GET", f"{acme.url}/readyz", []).status == 200
    acme.stop()
