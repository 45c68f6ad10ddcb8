"""Hosts and peers that are known by their client certificates, which a proxy with TLS verifies."""

import base64
import hashlib
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from carnet.testing.wait import until
from tests.security.contexts.conftest import AGENTS_HERE, CONFIG_HERE, served
from tests.security.contexts.requests import chain, seen_by
from tests.support.http import HeaderList, Reply, chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.support.signing.certificates import Certificate, certificate_of
from tests.support.signing.tls_proxy import TlsProxy, tls_proxy

JSON = ("content-type", "application/json")
SITE = "https://mutual.example"
PEER = "certified-peer.example"


def der_of(certificate: Certificate) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.path.read_text())


def fingerprint(certificate: Certificate) -> str:
    return hashlib.sha256(der_of(certificate)).hexdigest()


def written(certificate: Certificate) -> tuple[str, str]:
    """The header as a proxy writes it."""
    return ("client-cert", f":{base64.b64encode(der_of(certificate)).decode()}:")


class Behind(NamedTuple):
    """A gateway behind a proxy, and the certificates of those who call."""

    gateway: Organisation
    proxy: TlsProxy
    site: Certificate  # of a host that is listed
    peer: Certificate  # of an organisation that is listed
    other: Certificate  # that the proxy believes, and nobody has listed

    def ask(
        self,
        shows: Certificate,
        agent: str = "about",
        headers: HeaderList = (),
        *,
        token: str | None = None,
    ) -> Reply:
        """Ask an agent through the proxy."""
        fields = [JSON, *headers]
        if token is not None:
            fields.append(("authorization", f"Bearer {token}"))
        path = "/v1/chat/completions"
        return self.proxy.send(shows, "POST", path, fields, chat_body("hi", agent))

    def is_verified(self, shows: Certificate, headers: HeaderList = ()) -> bool:
        """Whether who shows it is believed to be the host that is listed."""
        fields = [*chain(host=SITE), *headers]
        reply = self.ask(shows, headers=fields, token=self.gateway.token)
        return bool(seen_by(reply)["context"]["verified"])


def _made(name: str, folder: Path) -> Certificate:
    (folder / name).mkdir()
    return certificate_of(name, folder / name)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("certificates")
    own = _made("localhost", folder)
    site, peer, other = (_made(f"{name}.example", folder) for name in ("site", "peer", "other"))
    colons = ":".join(fingerprint(peer).upper()[at : at + 2] for at in range(0, 64, 2))
    listed = f"""
[peers."{PEER}"]
url = "http://127.0.0.1:9"
certificate = "SHA256:{colons}"
may_forward_authorization = true
credit = "1"
"""
    with served(folder / "gateway", CONFIG_HERE + listed) as gateway:
        page = gateway.json("callers", "add", SITE, "--certificate", str(_pem(site)))
        assert page["certificate"] == f"sha256:{fingerprint(site)}"
        assert page["key"] is None
        with tls_proxy(gateway.url, own, [site, peer, other]) as proxy:
            found = Behind(gateway, proxy, site, peer, other)
            until(lambda: found.is_verified(site))  # noticed within a second
            yield found


def _pem(certificate: Certificate) -> Path:
    """The same file, with the ending that people give it."""
    path = certificate.path.with_suffix(".pem")
    path.write_bytes(certificate.path.read_bytes())
    return path


def test_a_host_is_verified_by_the_certificate_that_it_shows(behind: Behind) -> None:
    assert behind.is_verified(behind.site)


def test_the_certificate_of_another_verifies_no_host(behind: Behind) -> None:
    assert not behind.is_verified(behind.peer)
    assert not behind.is_verified(behind.other)


def test_what_a_caller_writes_in_its_own_header_does_not_pass_the_proxy(behind: Behind) -> None:
    assert not behind.is_verified(behind.other, [written(behind.site)])


def test_without_a_certificate_nobody_passes_the_proxy(behind: Behind) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        behind.proxy.send(None, "GET", "/healthz", [])


def test_a_peer_is_known_by_its_certificate_alone(behind: Behind) -> None:
    found = seen_by(behind.ask(behind.peer))
    assert found["safe"]["auth_source"] == "peer"
    assert found["owner"] == ["peer", f"peer:{PEER}"]
    assert found["token"] is None


def test_a_certificate_that_is_no_peers_is_nobody(behind: Behind) -> None:
    before = executions(behind.gateway.folder, "about")
    for shown in (behind.other, behind.site):
        reply = behind.ask(shown)
        assert (reply.status, reply.code) == (401, "token_missing")
    assert executions(behind.gateway.folder, "about") == before


def test_beside_a_certificate_a_wrong_token_is_wrong(behind: Behind) -> None:
    reply = behind.ask(behind.peer, token="ck_of-nobody")
    assert (reply.status, reply.code) == (401, "token_invalid")


def test_a_token_beside_a_certificate_is_who_calls(behind: Behind) -> None:
    found = seen_by(behind.ask(behind.peer, token=behind.gateway.token))
    assert found["safe"]["auth_source"] == "user"


def test_a_peer_pays_up_to_its_credit_and_reads_its_own_runs(behind: Behind) -> None:
    reply = behind.ask(behind.peer, "echo")
    run = reply.headers["x-tangle-runid"]
    page = behind.proxy.send(behind.peer, "GET", f"/runs/{run}", [])
    assert page.status == 200, page.body
    assert page.json["turns"][0]["actor"] == f"peer:{PEER}"
    assert behind.proxy.send(behind.other, "GET", f"/runs/{run}", []).status == 401
    shown = behind.gateway.json("explain", run)
    assert f"peer:{PEER}" in str(shown)


def test_a_peer_may_forward_a_credential_as_it_is_listed(behind: Behind) -> None:
    forwarded = [("x-tangle-forwarded-authorization", "Bearer somebody-elses")]
    reply = behind.ask(behind.peer, "echo", forwarded)
    assert reply.status == 200, reply.body


def test_people_see_by_what_a_peer_and_a_host_are_known(behind: Behind) -> None:
    peers = behind.gateway.json("peers", "list")["peers"]
    known = {peer["domain"]: peer["certificate"] for peer in peers}
    assert known[PEER] == f"sha256:{fingerprint(behind.peer)}"
    assert f"sha256:{fingerprint(behind.site)}" in behind.gateway.carnet("callers", "list").stdout


@pytest.fixture(scope="module")
def exposed(behind: Behind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """A gateway with the same lists, that anybody reaches, and not through its proxy alone."""
    listed = f"""
[callers."{SITE}"]
certificate = "sha256:{fingerprint(behind.site)}"

[peers."{PEER}"]
url = "http://127.0.0.1:9"
certificate = "sha256:{fingerprint(behind.peer)}"
"""
    gateway = Organisation(tmp_path_factory.mktemp("exposed") / "gateway", "acme.example")
    gateway.configure(CONFIG_HERE + listed, agents=AGENTS_HERE)
    file = gateway.folder / "carnet.toml"
    elsewhere = '[gateway]\ntrusted_proxies = ["192.0.2.1"]\ncertificate_header = "client-cert"\n'
    file.write_text(file.read_text().replace("[gateway]\n", elsewhere, 1))
    key = gateway.folder / "var" / "written.key"
    key.write_text("cck_x")
    key.chmod(0o600)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def test_a_header_from_an_address_that_is_no_proxys_verifies_nobody(
    behind: Behind, exposed: Organisation
) -> None:
    forged = [*chain(host=SITE), written(behind.site)]
    found = seen_by(exposed.chat("hi", "about", headers=forged))
    assert found["context"]["verified"] is False
    body = chat_body("hi", "about")
    for certificate in (behind.peer, behind.site):
        fields = [JSON, written(certificate)]
        reply = request("POST", f"{exposed.url}/v1/chat/completions", fields, body)
        assert (reply.status, reply.code) == (401, "token_missing")
