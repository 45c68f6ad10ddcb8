"""The page about callers that name themselves: what it tells people to type works, and is true."""

import re
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.support.organisation import Organisation

PAGE = (ROOT / "docs" / "callers.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_says_whose_business_trust_is_and_its_commands_work(tmp_path: Path) -> None:
    assert "whether a site is believed is the\nbusiness of whoever is called" in PAGE
    assert "We recommend one key for each site" in PAGE
    home = Organisation(tmp_path / "home", "acme.example")
    for command in "\n".join(blocks("sh")).splitlines():
        home.carnet(*command.split()[1:])


def test_its_configuration_can_be_used(tmp_path: Path) -> None:
    home = Organisation(tmp_path / "home", "acme.example")
    listed, certified, peer, policy = blocks("toml")
    (home.folder / "rules.py").write_text(blocks("python")[0])
    (home.folder / "var" / "site.key").write_text("cck_site")
    (home.folder / "var" / "site.key").chmod(0o600)
    home.configure(listed + policy)
    assert home.try_carnet("config", "check", "--load").returncode == 0
    pinned = "sha256:" + 64 * "a"
    more = (certified.partition("[callers")[0] + peer).replace("sha256:...", pinned)
    file = home.folder / "carnet.toml"
    head, _, rest = more.partition("[gateway]\n")[2].partition("[peers")
    file.write_text(file.read_text().replace("[gateway]\n", f"[gateway]\n{head}", 1))
    home.configure(f"[peers{rest}")
    done = home.try_carnet("config", "check", "--load")
    assert done.returncode == 0, done.stderr
