"""A small OpenID Connect issuer: one key, a discovery document, and access tokens for one person."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID: Final = "console"
_LIFE_S: Final = 3600  # Longer than any run.


@dataclass(frozen=True)
class Issuer:
    """The issuer's URL, and the key that it signs with."""

    url: str
    key: rsa.RSAPrivateKey

    def token(self, subject_id: str) -> str:
        """Return an access token as the console gets it after a login with a second factor: RS256, 2048 bits."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": subject_id,
            "azp": CLIENT_ID,
            "typ": "Bearer",
            "iat": now,
            "exp": now + _LIFE_S,
            "acr": "2",
            "email": f"{subject_id}@example.org",
            "email_verified": True,
            "realm_access": {"roles": ["offline_access", "uma_authorization"]},
        }
        return jwt.encode(claims, self.key, "RS256", headers={"kid": "bench"})


@contextlib.contextmanager
def issuer() -> Iterator[Issuer]:
    """Run an issuer on this machine."""
    key = rsa.generate_private_key(65537, 2048)
    documents: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(documents[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    documents["/.well-known/openid-configuration"] = {"issuer": url, "jwks_uri": f"{url}/keys"}
    documents["/keys"] = {"keys": [{**public, "kid": "bench", "alg": "RS256", "use": "sig"}]}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Issuer(url, key)
    finally:
        server.shutdown()
        server.server_close()
