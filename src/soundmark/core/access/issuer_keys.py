"""The keys with which the identity provider signs: read from it, kept while it is away, read anew when they change."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jwt
import structlog

from soundmark.core.problems import IdentityProviderUnavailable
from soundmark.kit.clock import Clock
from soundmark.kit.http.fetching import Fetcher, FetchFailed
from soundmark.kit.tasks import cancel_and_wait
from soundmark.kit.text.validation import is_secure_url

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")  # Contract, section 2.
TIMEOUT_S: Final = 3.0  # For one reading, both documents together: somebody's request waits for it.

_DISCOVERY: Final = "/.well-known/openid-configuration"
_DOCUMENT_MAX_BYTES: Final = 256 * 1024  # The longest key sets of large issuers, with certificates, have a tenth of it.
_FRESH_S: Final = 180.0  # A key that the issuer withdrew is accepted for this long at most while the issuer answers.
_AGAIN_S: Final = 10.0  # Contract, section 2: a forged `kid` cannot make us ask more often than this.
_AGAIN_WITHOUT_KEYS_S: Final = 1.0
_ISSUER_CHARS_MAX: Final = 255  # What a log needs to tell two addresses apart.
_RSA_BITS: Final = range(2048, 8192 + 1)  # RFC 7518, section 3.3, and what is still quick to check.

_log: Final = structlog.get_logger()

# One key for each algorithm that it may be used with.
Keys = Mapping[tuple[str, str], jwt.PyJWK]


class NamesAnotherIssuer(FetchFailed):
    """The discovery document is that of another issuer, which is `named`; None where it names none."""

    def __init__(self, named: Any) -> None:
        super().__init__("names_another_issuer")
        self.named = _printable(named[:_ISSUER_CHARS_MAX]) if isinstance(named, str) else None


class IssuerKeys:
    """Holds the last good set of keys of one issuer.

    A set is read when it is first needed, when it is no longer fresh, and when an unknown `kid` comes. However many
    wait, it is read once. A reading that fails changes nothing: the last good set stays, and after a failure nobody
    waits for the next attempt but those who have no other hope.
    """

    def __init__(self, issuer: str, clock: Clock, *, timeout_s: float = TIMEOUT_S) -> None:
        self._issuer: Final = issuer
        self._clock: Final = clock
        self._timeout_s: Final = timeout_s
        self._fetcher: Final = Fetcher(timeout_s=timeout_s, bytes_max=_DOCUMENT_MAX_BYTES)
        self._keys: Keys = {}
        self._read_at_s = float("-inf")
        self._tried_at_s = float("-inf")
        self._asked_at_s = float("-inf")
        self._is_failing = False
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read the set, without waiting for it."""
        self._start()

    async def find(self, kid: str, algorithm: str) -> jwt.PyJWK | None:
        """Return the key that the issuer names `kid`, for this algorithm and no other; None where there is no such key.

        Raises: IdentityProviderUnavailable while no set was ever read, and for an unknown `kid` while the issuer
            cannot be asked for it: it may be that of a new key.
        """
        began_at_s = self._clock.monotonic_s()
        await self._have_keys()
        if not self._knows(kid) and self._reading is not None:
            await self._read()
        # A reading that began after the question has answered it already, also by failing.
        may_ask = self._tried_at_s < began_at_s and began_at_s - self._asked_at_s >= _AGAIN_S
        if not self._knows(kid) and may_ask:
            self._asked_at_s = began_at_s
            await self._read()
        if not self._knows(kid) and self._is_failing:
            raise IdentityProviderUnavailable
        return self._keys.get((kid, algorithm))

    async def aclose(self) -> None:
        """Read no more, and let go of the connections."""
        if self._reading is not None:
            await cancel_and_wait(self._reading)
        await self._fetcher.aclose()

    def _knows(self, kid: str) -> bool:
        return any(known == kid for known, _ in self._keys)

    async def _have_keys(self) -> None:
        now_s = self._clock.monotonic_s()
        if not self._keys:
            if self._reading is not None or now_s - self._tried_at_s >= _AGAIN_WITHOUT_KEYS_S:
                await self._read()
            if not self._keys:
                raise IdentityProviderUnavailable
        elif now_s - self._read_at_s >= _FRESH_S:
            if not self._is_failing:
                await self._read()
            elif now_s - self._tried_at_s >= _AGAIN_S:
                self._start()  # The last attempt failed: nobody waits for an issuer that is slow or down.

    async def _read(self) -> None:
        # Shielded: whoever leaves takes nothing from the others who wait.
        await asyncio.shield(self._start())

    def _start(self) -> asyncio.Task[None]:
        """The reading that is under way; a new one where there is none."""
        if self._reading is None:
            self._tried_at_s = self._clock.monotonic_s()
            self._reading = asyncio.create_task(self._replace(), name="issuer keys")
            self._reading.add_done_callback(self._is_over)
        return self._reading

    def _is_over(self, _: asyncio.Task[None]) -> None:
        self._reading = None

    async def _replace(self) -> None:
        started_at_s = self._tried_at_s
        try:
            async with asyncio.timeout(self._timeout_s):
                keys = await fetch_keys(self._fetcher, self._issuer)
        except TimeoutError:
            self._failed("deadline")
        except NamesAnotherIssuer as error:
            self._failed(error.reason, configured=self._issuer, named=error.named)
        except FetchFailed as error:
            self._failed(error.reason)
        else:
            if keys.keys() != self._keys.keys():
                _log.info("issuer_keys_changed", keys=len(keys))
            self._keys = keys
            # As old as the question: the answer may be from before a key was withdrawn.
            self._read_at_s = started_at_s
            self._is_failing = False

    def _failed(self, reason: str, **what: str | None) -> None:
        self._is_failing = True
        _log.warning("issuer_keys_not_read", reason=reason, **what)


async def check_issuer(issuer: str) -> None:
    """Ask an issuer for its keys once, as Core does.

    Raises: FetchFailed; NamesAnotherIssuer.
    """
    fetcher = Fetcher(timeout_s=TIMEOUT_S, bytes_max=_DOCUMENT_MAX_BYTES)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await fetch_keys(fetcher, issuer)
    except TimeoutError:
        raise FetchFailed("deadline") from None
    finally:
        await fetcher.aclose()


async def fetch_keys(fetcher: Fetcher, issuer: str) -> Keys:
    """Return the keys as they are published now, at least one.

    Raises: FetchFailed; NamesAnotherIssuer.
    Source: OpenID Connect Discovery 1.0, section 4.
    """
    discovered = await fetcher.json_object(issuer.removesuffix("/") + _DISCOVERY)
    named, address = discovered.get("issuer"), discovered.get("jwks_uri")
    if named != issuer:
        raise NamesAnotherIssuer(named)
    if not isinstance(address, str) or not is_secure_url(address):
        raise FetchFailed("no_address_of_keys")
    keys = verification_keys(await fetcher.json_object(address))
    if not keys:
        raise FetchFailed("no_usable_key")
    return keys


def _printable(text: str) -> str:
    """Return a text that somebody else wrote, fit for a line of a log or a terminal."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text)


def verification_keys(document: Mapping[str, Any]) -> Keys:
    """Every key of a JWK Set that can verify tokens, by its name and each algorithm that it may be used with.

    What is meant for encryption, is symmetric, too weak, nameless or broken is passed over.

    Source: RFC 7517; contract, section 2.
    """
    found: dict[tuple[str, str], jwt.PyJWK] = {}
    members = document.get("keys")
    for member in members if isinstance(members, list) else ():
        kid = member.get("kid") if isinstance(member, dict) else None
        if not isinstance(kid, str):
            continue
        for algorithm, key in _usable(member):
            found.setdefault((kid, algorithm), key)
    return found


def _usable(member: Mapping[str, Any]) -> Iterator[tuple[str, jwt.PyJWK]]:
    operations = member.get("key_ops", ["verify"])
    if member.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return
    # The key's own type says which algorithms there can be, and its `alg`, where it has one, which of them.
    public: dict[str, Any]
    algorithms: tuple[str, ...]
    match member:
        case {"kty": "RSA", "n": str(n), "e": str(e)}:
            public, algorithms = {"kty": "RSA", "n": n, "e": e}, ("RS256", "PS256")
        case {"kty": "EC", "crv": "P-256", "x": str(x), "y": str(y)}:
            public, algorithms = {"kty": "EC", "crv": "P-256", "x": x, "y": y}, ("ES256",)
        case {"kty": "OKP", "crv": "Ed25519", "x": str(x)}:
            public, algorithms = {"kty": "OKP", "crv": "Ed25519", "x": x}, ("EdDSA",)
        case _:
            return
    for algorithm in algorithms:
        if member.get("alg", algorithm) != algorithm:
            continue
        try:
            key = jwt.PyJWK(public, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        if public["kty"] != "RSA" or key.key.key_size in _RSA_BITS:
            yield algorithm, key
