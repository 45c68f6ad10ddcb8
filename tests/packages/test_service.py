"""The unit for systemd: what it starts is what the command line takes, and it may do little."""

import configparser
import shlex
import subprocess
from pathlib import Path
from typing import IO

from carnet.config.settings import GatewaySettings
from carnet.testing import stage
from tests.docs.test_quickstart import ROOT
from tests.support.organisation import Organisation

PAGE = (ROOT / "docs" / "operations" / "install.md").read_text()
COMMAND = "/usr/local/lib/carnet/bin/carnet"


class Unit(configparser.RawConfigParser):
    """A file of systemd, whose names keep their case."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit() -> configparser.SectionProxy:
    """How the service is run."""
    read = Unit()
    read.read_string((ROOT / "packaging" / "carnet.service").read_text())
    return read["Service"]


def words_of(key: str, folder: Path) -> list[str]:
    """What a line runs, with a folder of the test in the place of the state's."""
    state = f"/var/lib/{unit()['StateDirectory']}"
    command, *words = shlex.split(unit()[key].replace(state, str(folder)))
    assert command == COMMAND
    return words


class Service(Organisation):
    """An organisation whose gateway is begun by the line of the unit."""

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        words = words_of("ExecStart", self.folder)
        return subprocess.Popen(  # noqa: S603  our own command
            [*stage.carnet_command(), *words, "--fd", str(self.address.fd)],
            cwd=Path.cwd().root,
            env=env,
            stdout=out,
            stderr=err,
            pass_fds=[self.address.fd],
        )


def test_the_lines_of_the_unit_check_the_configuration_and_serve(tmp_path: Path) -> None:
    acme = Service(tmp_path, "acme.example")
    acme.carnet(*words_of("ExecStartPre", tmp_path), at=None)
    acme.start()
    assert acme.chat("hello").text == "hello"
    assert acme.stop() == 0


def test_a_gateway_that_is_stopped_or_loaded_again_gets_the_signal_that_it_knows() -> None:
    service = unit()
    assert service["Type"] == "simple"  # it does not tell systemd that it is ready
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    settings = GatewaySettings()
    assert settings.drain_seconds + settings.grace_seconds < int(service["TimeoutStopSec"])
    assert "KillSignal" not in service  # SIGTERM, as by default


def test_the_unit_lets_the_gateway_write_its_state_and_little_else() -> None:
    service = unit()
    assert (service["User"], service["StateDirectory"]) == ("carnet", "carnet")
    assert service["StateDirectoryMode"] == "0700"
    assert (service["ProtectSystem"], service["NoNewPrivileges"]) == ("strict", "yes")
    assert service["CapabilityBoundingSet"] == ""
    for key in ("ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictSUIDSGID"):
        assert service[key] == "yes"


def test_the_page_sets_up_what_the_unit_names() -> None:
    service = unit()
    for named in (
        COMMAND,
        service["User"],
        service["WorkingDirectory"],
        "packaging/carnet.service",
    ):
        assert named in PAGE
