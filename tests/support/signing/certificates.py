"""Certificates that vouch for themselves, made here: a clone needs no other command."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.signing.signed import now


class Certificate(NamedTuple):
    """A certificate and its key, each in a file."""

    path: Path
    key: Path

    def serving(self) -> ssl.SSLContext:
        """How a server shows it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path, self.key)
        return context

    def trusting(self) -> ssl.SSLContext:
        """How a client believes it, and nobody else."""
        return ssl.create_default_context(cafile=str(self.path))


def certificate_of(name: str, folder: Path) -> Certificate:
    """A certificate of a name that holds since yesterday, and until tomorrow."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    today = datetime.fromtimestamp(now(), UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = Certificate(folder / "cert", folder / "key")
    files.path.write_bytes(made.public_bytes(Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    return files
