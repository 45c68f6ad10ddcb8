"""The compose file: it can be read, it names what exists, and it holds no secret."""

import json
import re
from typing import Any

import yaml

from carnet.config.limits import StoreSettings
from carnet.config.settings import GatewaySettings
from carnet.config.sources import docs_of
from carnet.stores.open import is_postgres
from tests.docs.test_quickstart import ROOT
from tests.packages.test_dockerfile import of_kind

FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
PAGE = (ROOT / "docs" / "operations" / "install.md").read_text()


def test_a_gateway_waits_for_a_healthy_postgres_and_is_asked_for_its_readiness() -> None:
    gateway, db = FILE["services"]["gateway"], FILE["services"]["db"]
    assert gateway["build"] == "."
    assert gateway["depends_on"] == {"db": {"condition": "service_healthy"}}
    (in_image,) = of_kind("HEALTHCHECK")
    assert gateway["healthcheck"]["test"] == ["CMD", *json.loads(in_image.partition(" CMD ")[2])]
    assert "/readyz" in in_image
    assert db["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]


def test_what_is_set_is_what_the_gateway_reads() -> None:
    environment = FILE["services"]["gateway"]["environment"]
    assert is_postgres(environment["CARNET__STORE__URL"])
    known = {"STORE": docs_of(StoreSettings), "GATEWAY": docs_of(GatewaySettings)}
    for name in environment:
        if name.startswith("CARNET__"):
            _, section, key = name.split("__")
            assert key.lower() in known[section]
    assert environment["CARNET__STORE__URL"].endswith("//carnet@db/carnet")
    database = FILE["services"]["db"]["environment"]
    assert (database["POSTGRES_USER"], database["POSTGRES_DB"]) == ("carnet", "carnet")


def test_passwords_come_from_outside_and_what_must_stay_is_on_volumes() -> None:
    for service in FILE["services"].values():
        for name, value in service["environment"].items():
            if "PASSWORD" in name:
                assert value == "${POSTGRES_PASSWORD:?set it in .env}"
    kept = [line for service in FILE["services"].values() for line in service["volumes"]]
    assert {line.partition(":")[0] for line in kept} == set(FILE["volumes"])
    assert f"data:{of_kind('VOLUME')[0]}" in kept
    assert re.search(r"^/?\.env$", (ROOT / ".gitignore").read_text(), re.MULTILINE)


def test_only_this_machine_reaches_the_gateway_until_a_proxy_stands_before_it() -> None:
    assert FILE["services"]["gateway"]["ports"] == ["127.0.0.1:8700:8700"]
    assert "ports" not in FILE["services"]["db"]


def test_the_page_uses_the_names_of_the_file() -> None:
    used = set(re.findall(r"docker compose (?:exec|logs|run --rm) (\w+)", PAGE))
    assert used
    assert used <= set(FILE["services"])
    assert "POSTGRES_PASSWORD" in PAGE
    assert "CARNET_PUBLIC_URL" in PAGE
