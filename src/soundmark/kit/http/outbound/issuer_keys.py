"""The identity provider's signing keys: fetched, kept while it is unreachable, and fetched again when they change."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jwt
import structlog

from soundmark.kit.clock import Clock
from soundmark.kit.http.outbound.fetching import Fetcher, FetchFailed
from soundmark.kit.tasks import cancel_and_wait
from soundmark.kit.text.validation import is_secure_url

ALGORITHMS: Final = ("RS256", "PS256", "ES256", "EdDSA")  # Contract, section 2.
TIMEOUT_S: Final = 3.0  # For both documents together; somebody's request waits for them.

_DISCOVERY: Final = "/.well-known/openid-configuration"
_DOCUMENT_MAX_BYTES: Final = 256 * 1024  # Ten times the largest key sets, with certificates, of large issuers.
_FRESH_S: Final = 180.0  # While the issuer answers, a withdrawn key is accepted for this long at most.
_AGAIN_S: Final = 10.0  # Contract, section 2: forged `kid`s cannot cause more frequent requests than this.
_AGAIN_WITHOUT_KEYS_S: Final = 1.0
_ISSUER_CHARS_MAX: Final = 255  # Enough for a log to distinguish two addresses.
_RSA_BITS: Final = range(
    2048, 8192 + 1
)  # The minimum is RFC 7518, section 3.3; larger keys than the maximum are slow to verify.

_log: Final = structlog.get_logger()

# By `kid` and algorithm: a key that several algorithms may use has several entries. The entry with the `kid` None is
# the only key of the set that fits the algorithm, if there is exactly one.
Keys = Mapping[tuple[str | None, str], jwt.PyJWK]


class IssuerUnavailable(Exception):
    """The issuer cannot be reached, and what it last published does not answer the question."""


class NamesAnotherIssuer(FetchFailed):
    """The discovery document belongs to another issuer, `named`, or to none (None)."""

    def __init__(self, named: Any) -> None:
        super().__init__("names_another_issuer")
        self.named = _printable(named[:_ISSUER_CHARS_MAX]) if isinstance(named, str) else None


@dataclass(frozen=True, slots=True)
class IssuerDocuments:
    """What an issuer publishes: its metadata, and at least one key."""

    metadata: Mapping[str, Any]
    keys: Keys


class IssuerKeys:
    """Holds the last good key set of one issuer, and the metadata that was read with it.

    The set is read when it is first needed, when it is no longer fresh, and when a token has an unknown `kid`. Callers
    that wait at the same time share one read. A failed read changes nothing: the last good set stays. After a failure,
    only callers whose key is unknown wait for the next attempt.
    """

    def __init__(
        self, issuer: str, clock: Clock, *, timeout_s: float = TIMEOUT_S, extra_ca_file: Path | None = None
    ) -> None:
        self._issuer: Final = issuer
        self._clock: Final = clock
        self._timeout_s: Final = timeout_s
        self._fetcher: Final = Fetcher(timeout_s=timeout_s, bytes_max=_DOCUMENT_MAX_BYTES, extra_ca_file=extra_ca_file)
        self._keys: Keys = {}
        self._metadata: Mapping[str, Any] = {}
        self._read_at_s = float("-inf")
        self._tried_at_s = float("-inf")
        self._searched_at_s = float("-inf")
        self._is_failing = False
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read the set, without waiting for it."""
        self._start()

    async def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the issuer's key with this `kid` and algorithm; None if there is none.

        Without a `kid` it is the only key that fits the algorithm, in the set as last read.

        Raises: IssuerUnavailable if no set was ever read, or if `kid` is unknown and the issuer cannot be
            reached: it may belong to a new key.
        Source: OpenID Connect Core 1.0, section 10.1.
        """
        began_at_s = self._clock.monotonic_s()
        await self._have_keys()
        if not self.knows(kid) and self._reading is not None:
            await self._read()
        # A read that began after this call has already given its answer, even if it failed.
        may_search = self._tried_at_s < began_at_s and began_at_s - self._searched_at_s >= _AGAIN_S
        if not self.knows(kid) and may_search:
            self._searched_at_s = began_at_s
            await self._read()
        if not self.knows(kid) and self._is_failing:
            raise IssuerUnavailable
        return self._keys.get((kid, algorithm))

    def knows(self, kid: str | None) -> bool:
        """Return whether the last set has a key with this `kid`, for whichever algorithm; true without a `kid`."""
        return kid is None or any(known == kid for known, _ in self._keys)

    async def describe(self) -> Mapping[str, Any]:
        """Return the issuer's metadata, as last read.

        Raises: IssuerUnavailable if they were never read.
        Source: OpenID Connect Discovery 1.0, section 3.
        """
        await self._have_keys()
        return self._metadata

    async def aclose(self) -> None:
        """Stop reading and close the connections."""
        if self._reading is not None:
            await cancel_and_wait(self._reading)
        await self._fetcher.aclose()

    async def _have_keys(self) -> None:
        now_s = self._clock.monotonic_s()
        if not self._keys:
            if self._reading is not None or now_s - self._tried_at_s >= _AGAIN_WITHOUT_KEYS_S:
                await self._read()
            if not self._keys:
                raise IssuerUnavailable
        elif now_s - self._read_at_s >= _FRESH_S:
            if not self._is_failing:
                await self._read()
            elif now_s - self._tried_at_s >= _AGAIN_S:
                self._start()  # The last attempt failed, so nobody waits for an issuer that is slow or down.

    async def _read(self) -> None:
        # Shielded, so that a caller that gives up does not cancel the read for the others.
        await asyncio.shield(self._start())

    def _start(self) -> asyncio.Task[None]:
        """Return the read that is in progress, or start one."""
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
                documents = await fetch_documents(self._fetcher, self._issuer)
        except TimeoutError:
            self._report_failure("deadline")
        except NamesAnotherIssuer as error:
            self._report_failure(error.reason, configured=self._issuer, named=error.named)
        except FetchFailed as error:
            self._report_failure(error.reason)
        else:
            if documents.keys.keys() != self._keys.keys():
                _log.info("issuer_keys_changed", keys=len(set(documents.keys.values())))
            self._keys, self._metadata = documents.keys, documents.metadata
            # As old as the request: the response may date from before a key was withdrawn.
            self._read_at_s = started_at_s
            self._is_failing = False

    def _report_failure(self, reason: str, **details: str | None) -> None:
        self._is_failing = True
        _log.warning("issuer_keys_not_read", reason=reason, **details)


async def check_issuer(issuer: str, *, extra_ca_file: Path | None = None) -> None:
    """Fetch an issuer's keys once, as a served process does.

    Raises: FetchFailed; NamesAnotherIssuer.
    """
    fetcher = Fetcher(timeout_s=TIMEOUT_S, bytes_max=_DOCUMENT_MAX_BYTES, extra_ca_file=extra_ca_file)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await fetch_documents(fetcher, issuer)
    except TimeoutError:
        raise FetchFailed("deadline") from None
    finally:
        await fetcher.aclose()


async def fetch_documents(fetcher: Fetcher, issuer: str) -> IssuerDocuments:
    """Return the issuer's metadata and the keys that it publishes now.

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
    return IssuerDocuments(discovered, keys)


def _printable(text: str) -> str:
    """Return a foreign text in a form that is safe in a log line and on a terminal."""
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text)


def verification_keys(document: Mapping[str, Any]) -> Keys:
    """Return every key of a JWK Set that can verify tokens, by `kid` and each algorithm that it may be used with.

    Keys that are for encryption, symmetric, too weak or malformed are skipped. One without a `kid` is found only by a
    token without one, as the only key that fits the algorithm. A member that is null, as some issuers write it, is
    absent.

    Source: RFC 7517; contract, section 2.
    """
    found: dict[tuple[str | None, str], jwt.PyJWK] = {}
    fitting: dict[str, list[jwt.PyJWK]] = {}
    keys = document.get("keys")
    for listed in keys if isinstance(keys, list) else ():
        member = (
            {name: value for name, value in listed.items() if value is not None} if isinstance(listed, dict) else {}
        )
        if not isinstance(member.get("kid", ""), str):
            continue
        for algorithm, key in _usable(member):
            fitting.setdefault(algorithm, []).append(key)
            if "kid" in member:
                found.setdefault((member["kid"], algorithm), key)
    found.update({(None, algorithm): fit[0] for algorithm, fit in fitting.items() if len(fit) == 1})
    return found


def _usable(member: Mapping[str, Any]) -> Iterator[tuple[str, jwt.PyJWK]]:
    operations = member.get("key_ops", ["verify"])
    if member.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return
    # The key's type determines the possible algorithms; its `alg`, if present, selects one of them.
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
