"""TLS to other servers: which authorities are trusted."""

import functools
import ssl
from pathlib import Path

import httpx2


@functools.lru_cache(maxsize=8)
def share_tls_context(extra_ca_file: Path | None) -> ssl.SSLContext:
    """Return the context of this process's outgoing connections; nobody may change it.

    It trusts the authorities of the operating system, or those of `SSL_CERT_FILE` if that is set, and those of
    `extra_ca_file` besides. Reading all of them takes some 20 ms, and Core has a client for each server that it calls.

    Raises: OSError if the file cannot be read or holds no certificate.
    """
    context = httpx2.create_ssl_context()
    if extra_ca_file is not None:
        context.load_verify_locations(cafile=extra_ca_file)
    return context
