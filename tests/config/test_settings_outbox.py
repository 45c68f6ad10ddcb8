"""How often deliveries are tried, and who hears of those that died."""

from pathlib import Path

import pytest

from carnet.errors import ConfigInvalid
from carnet.runtime.egress.addresses import Allowed
from carnet.runtime.webhooks.schedule import SCHEDULE
from tests.config.test_settings import loaded, refusal


def test_without_a_word_the_schedule_is_that_of_the_standard(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    assert settings.outbox.schedule == SCHEDULE
    assert (settings.outbox.timeout, settings.inbox.notify) == (10, ())


def test_a_schedule_is_a_list_of_seconds(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[outbox]\nschedule = [0, 0.5, 60]\n").outbox.schedule == (0, 0.5, 60)
    env = {"CARNET__OUTBOX__SCHEDULE": "[0, 1]"}
    assert loaded(tmp_path, env=env).outbox.schedule == (0, 1)


@pytest.mark.parametrize(
    "entry",
    [
        *("http://127.0.0.1:9000", "127.0.0.1:99999", "127.0.0.1:0", "a.example", "a b:80"),
        *("10.0.0.1/8", "a.example:80/x", "[::1]", "::1:x", ":9000", ""),
    ],
)
def test_what_the_way_out_would_refuse_is_refused_when_the_file_is_read(
    tmp_path: Path, entry: str
) -> None:
    message = refusal(tmp_path, f"[egress]\nallow = ['{entry}']\n")
    assert "egress.allow" in message
    assert '"host:port" or ranges without a scheme' in message
    with pytest.raises(ConfigInvalid):
        Allowed([entry])


def test_an_exception_is_a_host_and_port_or_a_range(tmp_path: Path) -> None:
    entries = ("127.0.0.1:9000", "[::1]:80", "Hooks.example:8443", "10.0.0.0/8", "fd00::/8", "::1")
    assert loaded(tmp_path, f"[egress]\nallow = {list(entries)}\n").egress.allow == entries
    Allowed(entries)


@pytest.mark.parametrize(
    "value", ["[]", "5", '["5"]', "[-1]", "[0, 604801]", "[true]", "[nan]", str([1] * 33)]
)
def test_a_schedule_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    message = refusal(tmp_path, f"[outbox]\nschedule = {value}\n")
    assert "outbox.schedule" in message
    assert "a list of 1 to 32 numbers of seconds" in message


def test_an_attempt_may_not_take_longer_than_a_lease_allows(tmp_path: Path) -> None:
    assert "at most 25" in refusal(tmp_path, "[outbox]\ntimeout = 26\n")


@pytest.mark.parametrize(
    "value", ['"https://ops.example/in/?k=1"', '["https://ops.example/in/?k=1"]']
)
def test_who_is_told_is_a_url_or_several(tmp_path: Path, value: str) -> None:
    settings = loaded(tmp_path, f"[inbox]\nnotify = {value}\n")
    assert settings.inbox.notify == ("https://ops.example/in/?k=1",)


def test_who_is_told_can_be_set_in_the_environment(tmp_path: Path) -> None:
    env = {"CARNET__INBOX__NOTIFY": "https://a.example/x, http://127.0.0.1:9/y"}
    assert loaded(tmp_path, env=env).inbox.notify == (
        "https://a.example/x",
        "http://127.0.0.1:9/y",
    )


@pytest.mark.parametrize(
    "value", ['"ftp://a.example"', '["nothing"]', '"https://a.example/#x"', "1", '"https://a b"']
)
def test_what_is_no_url_is_refused(tmp_path: Path, value: str) -> None:
    assert "http or https URLs" in refusal(tmp_path, f"[inbox]\nnotify = {value}\n")


def test_a_credential_in_a_url_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[inbox]\nnotify = "https://me:secret@a.example/"\n')
    assert "holds a credential" in message
    assert "secret@" not in message
