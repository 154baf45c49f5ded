"""TLS to other servers: whose certificates are believed."""

import ssl
from pathlib import Path

import httpx2


def make_tls_context(extra_ca_file: Path | None) -> ssl.SSLContext:
    """Return the context of an outgoing connection; every client of ours takes it from here.

    Believed are the authorities that the operating system trusts, or those of `SSL_CERT_FILE` if that is set, and those
    of `extra_ca_file` besides.

    Raises: OSError if the file cannot be read or holds no certificate.
    """
    context = httpx2.create_ssl_context()
    if extra_ca_file is not None:
        context.load_verify_locations(cafile=extra_ca_file)
    return context
