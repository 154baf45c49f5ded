"""A certificate authority that no operating system trusts, and servers with certificates of it."""

import contextlib
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.outside.mail_server import Certificate
from support.outside.misbehaving_server import Behaviour, MisbehavingServer, misbehaving_server


@dataclass(frozen=True)
class PrivateAuthority:
    """The file with the authority's own certificate, and a server certificate that it issued."""

    ca_file: Path
    issued: Certificate

    def server_context(self) -> ssl.SSLContext:
        return self.issued.server_context()


def make_authority(folder: Path, *addresses: str, is_expired: bool = False) -> PrivateAuthority:
    """Make an authority, and a certificate of it for these IP addresses, which has expired if it should have."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Authority of the tests")])
    own = _build(ca_name, ca_name, ca_key, is_authority=True).sign(ca_key, hashes.SHA256())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server.test")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
    issued = _build(name, ca_name, key, is_authority=False, is_expired=is_expired)
    issued = issued.add_extension(names, critical=False)
    made = PrivateAuthority(folder / "ca.pem", Certificate(folder / "server.pem", folder / "server.key"))
    made.ca_file.write_bytes(own.public_bytes(Encoding.PEM))
    made.issued.certificate_file.write_bytes(issued.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM))
    made.issued.key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return made


def _build(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool, is_expired: bool = False
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1) * (-0.5 if is_expired else 1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )


@contextlib.asynccontextmanager
async def tls_server(authority: PrivateAuthority, behave: Behaviour) -> AsyncIterator[MisbehavingServer]:
    """Run a loopback server with a certificate of the authority that does `behave` on every request."""
    async with misbehaving_server(behave, tls=authority.server_context()) as server:
        yield server
