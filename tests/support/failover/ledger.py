"""What clients were told, and what they may therefore be told later: the oracle of the fault test."""

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx2

from soundmark.kit.postgres.promotions import LEASE_S
from soundmark.kit.text.timestamps import format_timestamp
from support.api.core_client import PROOF
from support.audience.event_delivery import sign_body
from support.audience.event_publisher import new_id

_WORKING_AGAIN_S: Final = 60.0
_ATTEMPTS_MAX: Final = 100
_CHECKERS: Final = 4
_FIRST_END: Final = datetime(2099, 1, 1, tzinfo=UTC)
_CONTRACT_PAUSE_S: Final = 1.0
_KEEPALIVE_S: Final = 1.0  # Less than processes drain for, so that no idle connection ends while it is taken up again.
_PROOF_S: Final = 200.0  # Proofs are valid for five minutes from the resolution.
# What a client may meet while servers fail; anything else is a fault of ours.
_UNAVAILABLE: Final = 503


@dataclass
class KnownCode:
    """A Code that was issued under an idempotency key, and what happened to it since, in this client's time."""

    key: str
    body: dict[str, Any]
    answer: bytes
    xr_id: str
    token: str
    issued_at_s: float
    revocation_sent_s: float | None = None
    revocation_answered_s: float | None = None


@dataclass
class SentEvent:
    """An event that was answered as recorded, or as a duplicate of an earlier attempt."""

    body: bytes
    answered_at_s: float


@dataclass(frozen=True)
class Measured:
    """The Code that publishers' events are about, and the secret that they sign with."""

    integration_id: str
    hmac_secret: str
    token: str


def contract_body(ends_at: datetime) -> dict[str, str]:
    """Return what an operator sends for a contract for measuring until then."""
    return {
        "plan_id": "plan_audience_contract",
        "contract_reference": "Ledger",
        "status": "active",
        "period_end": format_timestamp(ends_at),
    }


@dataclass
class Ledger:
    """Clients of several Cores, which record every answer and every contradiction."""

    urls: Sequence[str]
    headers: dict[str, str]
    tenant: dict[str, str]
    measured: Measured
    chance: random.Random
    timeout_s: float = 4.0
    pause_s: float = 0.05
    contract_ends_at: datetime | None = None
    events: list[SentEvent] = field(default_factory=list)
    codes: list[KnownCode] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    issued_at_s: float = 0.0
    resolved_at_s: float = 0.0
    measured_at_s: float = 0.0
    _numbers: Any = field(default_factory=itertools.count)

    async def run(self, stopping: asyncio.Event) -> None:
        """Issue, repeat, revoke, resolve, measure and extend a contract until told to stop."""
        limits = httpx2.Limits(keepalive_expiry=_KEEPALIVE_S)
        client = httpx2.AsyncClient(timeout=self.timeout_s, limits=limits, trust_env=False)
        async with asyncio.TaskGroup() as group, client:
            loops = [self._issue] * 2 + [self._revoke] * 2 + [self._resolve] * 3
            loops += [self._repeat, self._publish, self._extend]
            await asyncio.gather(*(group.create_task(self._loop(each, client, stopping)) for each in loops))

    async def check_everything(self) -> None:
        """Compare every Code and every key with what was answered, on healthy servers."""
        async with httpx2.AsyncClient(timeout=30, trust_env=False) as client:
            await asyncio.gather(*(self._check(client, self.codes[n::_CHECKERS]) for n in range(_CHECKERS)))
            for event in self._list_fresh_events():
                await self._deliver(client, event.body, is_known=True)

    async def _check(self, client: httpx2.AsyncClient, codes: Sequence[KnownCode]) -> None:
        for code in codes:
            status = await self._resolve_one(client, code)
            if status not in {200, 404}:
                self.contradictions.append(f"{code.xr_id} is {status} at the end")
            await self._repeat_one(client, code)

    async def until_working(self) -> float:
        """Return after how many seconds from now an issuance and a resolution have succeeded."""
        return await self._until(lambda: min(self.issued_at_s, self.resolved_at_s))

    async def until_measuring(self) -> float:
        """Return after how many seconds from now an event was recorded."""
        return await self._until(lambda: self.measured_at_s)

    async def _until(self, last_at_s: Callable[[], float]) -> float:
        began_s = time.monotonic()
        while last_at_s() <= began_s:
            assert time.monotonic() < began_s + _WORKING_AGAIN_S, f"nothing works any more: {self.counts}"
            await asyncio.sleep(0.02)
        return time.monotonic() - began_s

    async def _loop(self, step: Any, client: httpx2.AsyncClient, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await step(client)
            await asyncio.sleep(self.pause_s)

    async def _send(self, client: httpx2.AsyncClient, method: str, path: str, **options: Any) -> httpx2.Response | None:
        """Send a request to any Core; None if it has no answer or 503."""
        url = self.chance.choice(self.urls)
        try:
            response = await client.request(method, url + path, **options)
        except httpx2.HTTPError as error:
            self.counts[type(error).__name__] += 1
            return None
        self.counts[f"{method} {response.status_code}"] += 1
        if response.status_code == _UNAVAILABLE:
            return None
        if response.status_code >= 500:
            self.contradictions.append(f"{method} {path}: {response.status_code} {response.text}")
            return None
        return response

    async def _until_answered(
        self, what: str, attempt: Callable[[], Awaitable[httpx2.Response | None]]
    ) -> httpx2.Response | None:
        """Try until there is an answer; None if there never is one."""
        for _ in range(_ATTEMPTS_MAX):
            response = await attempt()
            if response is not None:
                return response
            await asyncio.sleep(self.pause_s)
        self.contradictions.append(f"{what} never got an answer")
        return None

    async def _issue(self, client: httpx2.AsyncClient) -> None:
        key = f"ledger-{next(self._numbers):012}"
        body = {
            **self.tenant,
            "issuer": "Ledger",
            "expires_at": format_timestamp(datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)),
            "intent": {"type": "link", "action": "open", "resource": {"url": f"https://example.org/{key}"}},
        }
        # Without an answer, nobody knows whether it happened: the same key until there is one.
        response = await self._until_answered(key, lambda: self._post_code(client, key, body))
        if response is None:
            return
        if response.status_code != 201:
            self.contradictions.append(f"{key}: {response.status_code} {response.text}")
            return
        self.issued_at_s = time.monotonic()
        code = response.json()
        self.codes.append(
            KnownCode(key, body, response.content, code["xr_id"], code["broadcast_token"], self.issued_at_s)
        )

    async def _repeat(self, client: httpx2.AsyncClient) -> None:
        if self.codes:
            await self._repeat_one(client, self.chance.choice(self.codes))

    async def _repeat_one(self, client: httpx2.AsyncClient, code: KnownCode) -> None:
        response = await self._post_code(client, code.key, code.body)
        if response is not None and (response.status_code, response.content) != (201, code.answer):
            self.contradictions.append(f"{code.key} was answered otherwise: {response.status_code} {response.text}")

    async def _post_code(self, client: httpx2.AsyncClient, key: str, body: dict[str, Any]) -> httpx2.Response | None:
        headers = {**self.headers, "Idempotency-Key": key}
        return await self._send(client, "POST", "/v1/codes", headers=headers, json=body)

    async def _revoke(self, client: httpx2.AsyncClient) -> None:
        live = [code for code in self.codes if code.revocation_answered_s is None]
        if len(live) < 5:
            return
        code = self.chance.choice(live)
        if code.revocation_sent_s is None:
            code.revocation_sent_s = time.monotonic()
        path = f"/v1/codes/{code.xr_id}/revoke"
        params = {"organization_id": self.tenant["organization_id"]}
        response = await self._send(client, "POST", path, headers=self.headers, params=params)
        if response is None:
            return
        if response.status_code == 200:
            code.revocation_answered_s = time.monotonic()
        elif response.status_code != 404:  # A Core that was left behind does not know it, which promises nothing.
            self.contradictions.append(f"revocation of {code.xr_id}: {response.status_code} {response.text}")

    async def _publish(self, client: httpx2.AsyncClient) -> None:
        """Resolve the measured Code and deliver an event about it, or more often one that was answered before."""
        if self.chance.random() < 0.7:
            if known := self._list_fresh_events():
                await self._deliver(client, self.chance.choice(known).body, is_known=True)
            return
        resolved = await self._send(client, "GET", f"/v1/resolve/{self.measured.token}", headers=PROOF)
        if resolved is None:
            return
        resolution = resolved.json()
        event = {
            "event_id": new_id("evt_"),
            "integration_id": self.measured.integration_id,
            "xr_id": resolution["xr_id"],
            "occurred_at": format_timestamp(datetime.now(UTC).replace(microsecond=0)),
            "receiver_class": "phone",
            "measurement_token": new_id("mt_", 32),
            "country": "TN",
            "proof": resolution["measurement_proof"],
        }
        body = json.dumps(event).encode()
        if await self._until_answered("an event", lambda: self._deliver(client, body, is_known=False)):
            self.measured_at_s = time.monotonic()
            self.events.append(SentEvent(body, self.measured_at_s))

    async def _extend(self, client: httpx2.AsyncClient) -> None:
        """Give the contract for measuring another end, which Core's worker carries to Audience."""
        ends_at = _FIRST_END + timedelta(seconds=next(self._numbers))
        body = contract_body(ends_at)
        path = f"/v1/billing/admin/audience-contracts/{self.tenant['organization_id']}"
        response = await self._until_answered(
            "a contract", lambda: self._send(client, "PUT", path, headers=self.headers, json=body)
        )
        if response is None:
            return
        if response.status_code == 200:
            self.contract_ends_at = ends_at
        else:
            self.contradictions.append(f"a contract: {response.status_code} {response.text}")
        await asyncio.sleep(_CONTRACT_PAUSE_S)

    def _list_fresh_events(self) -> list[SentEvent]:
        """Return the events whose proofs are still valid."""
        return [event for event in self.events if event.answered_at_s > time.monotonic() - _PROOF_S]

    async def _deliver(self, client: httpx2.AsyncClient, body: bytes, *, is_known: bool) -> httpx2.Response | None:
        signature = sign_body(body, self.measured.hmac_secret)
        headers = {"Content-Type": "application/json", "X-Svc-Signature": signature}
        response = await self._send(client, "POST", "/v1/events", headers=headers, content=body)
        if response is None:
            return None
        allowed = {200} if is_known else {200, 201}  # An attempt without an answer may have been recorded.
        if response.status_code not in allowed:
            what = "lost, or refused" if is_known else "refused"
            self.contradictions.append(f"an event was {what}: {response.status_code} {response.text}")
        return response

    async def _resolve(self, client: httpx2.AsyncClient) -> None:
        # What was revoked last is what an old primary would still answer.
        revoked = sorted(
            (code for code in self.codes if code.revocation_answered_s),
            key=lambda code: code.revocation_answered_s or 0,
        )
        among = revoked[-5:] if revoked and self.chance.random() < 0.5 else self.codes[-50:]
        if among:
            await self._resolve_one(client, self.chance.choice(among))

    async def _resolve_one(self, client: httpx2.AsyncClient, code: KnownCode) -> int | None:
        began_s = time.monotonic()
        answered_before = code.revocation_answered_s is not None and code.revocation_answered_s < began_s
        response = await self._send(client, "GET", f"/v1/resolve/{code.token}")
        if response is None:
            return None
        if response.status_code == 200 and answered_before:
            age_s = began_s - (code.revocation_answered_s or 0)
            self.contradictions.append(f"{code.xr_id} was resolved {age_s:.2f} s after its revocation was answered")
        elif response.status_code == 404 and code.revocation_sent_s is None and code.issued_at_s < began_s - LEASE_S:
            # A process that still reads the old primary may not know what was issued in the last seconds.
            self.contradictions.append(
                f"{code.xr_id} was issued {began_s - code.issued_at_s:.2f} s before, and is lost"
            )
        elif response.status_code in {200, 404}:
            self.resolved_at_s = time.monotonic() if response.status_code == 200 else self.resolved_at_s
        else:
            self.contradictions.append(f"{code.xr_id}: {response.status_code} {response.text}")
        return response.status_code
