"""Webhooks: really sent, with retries, and held, doubled or reordered on command."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import httpx2

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.sandbox.minting import mint_id
from soundmark.sandbox.misbehaviour import WEBHOOK_KINDS, Switches
from soundmark.sandbox.shelf import Shelf

_TIMEOUT_S: Final = 30
_SHOWN_MAX: Final = 1_000  # A storm repeats few deliveries, so fewer than of everything else are kept.


@dataclass(frozen=True, slots=True)
class Notice:
    """What a system sends to Core. `sign` makes the headers of an attempt, so that each has its own time."""

    system: str
    label: str
    method: str
    url: str
    body: bytes
    sign: Callable[[], Mapping[str, str]]


@dataclass(slots=True)
class Delivery:
    """A notice on its way: `held`, `sending`, `delivered` or `failed`, with the result of each attempt."""

    id: str
    notice: Notice
    created_at: datetime
    state: str = "sending"
    attempts: list[str] = field(default_factory=list)


class Deliveries:
    """Everything that is sent to Core; the first attempts of one system go out one after the other."""

    def __init__(
        self,
        switches: Switches,
        clock: Clock,
        entropy: Entropy,
        *,
        retry_pauses_s: Sequence[float],
        transport: httpx2.AsyncBaseTransport | None,
    ) -> None:
        self._switches: Final = switches
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._retry_pauses_s: Final = retry_pauses_s
        self._client: Final = httpx2.AsyncClient(
            transport=transport, timeout=_TIMEOUT_S, trust_env=False, follow_redirects=False
        )
        self._sent: Final[Shelf[Delivery]] = Shelf(_SHOWN_MAX)
        self._turns: Final[defaultdict[str, asyncio.Lock]] = defaultdict(asyncio.Lock)
        self._gathered: Final[defaultdict[str, list[Delivery]]] = defaultdict(list)
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.held: Final[set[str]] = set()

    def send(self, notice: Notice) -> Delivery:
        """Send a notice in the background, unless its system's notices are held."""
        delivery = Delivery(mint_id(self._entropy, "dlv_"), notice, self._clock.now())
        self._sent.add(delivery.id, delivery)
        if notice.system in self.held or not notice.url:
            delivery.state = "held"
            return delivery
        switch = self._switches.take(notice.system, notice.label, WEBHOOK_KINDS)
        if switch is None:
            self._start(self._deliver(delivery))
        elif switch.kind == "duplicate_webhook":
            self._start(self._deliver(delivery, copies_count=2))
        else:
            gathered = self._gathered[notice.system]
            gathered.append(delivery)
            if len(gathered) == 1:
                self._start(self._send_newest_first(gathered, switch.seconds))
        return delivery

    def send_again(self, delivery: Delivery) -> None:
        """Send a notice that was held, or send it once more."""
        self._start(self._deliver(delivery))

    def find(self, delivery_id: str) -> Delivery | None:
        """Return one delivery."""
        return self._sent.find(delivery_id)

    def newest_first(self) -> list[Delivery]:
        """Return the last thousand deliveries."""
        return self._sent.newest_first()

    async def settle(self) -> None:
        """Wait until nothing is on its way and no retry is due."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def clear(self) -> None:
        """Forget every delivery; retries are dropped."""
        for task in self._tasks:
            task.cancel()
        self._sent.clear()
        self._gathered.clear()
        self.held.clear()

    async def aclose(self) -> None:
        """Drop what is on its way, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_newest_first(self, gathered: list[Delivery], seconds: float) -> None:
        await asyncio.sleep(seconds)
        deliveries = list(reversed(gathered))
        gathered.clear()
        for delivery in deliveries:
            await self._deliver(delivery)

    async def _deliver(self, delivery: Delivery, copies_count: int = 1) -> None:
        delivery.state = "sending"
        for pause_s in (0, *self._retry_pauses_s):
            if pause_s:
                await asyncio.sleep(pause_s)
            outcomes = [await self._attempt(delivery) for _ in range(copies_count)]
            if any(outcomes):
                delivery.state = "delivered"
                return
        delivery.state = "failed"

    async def _attempt(self, delivery: Delivery) -> bool:
        """Send a notice once, and return whether it was taken."""
        notice = delivery.notice
        async with self._turns[notice.system]:
            try:
                response = await self._client.request(
                    notice.method, notice.url, content=notice.body or None, headers=dict(notice.sign())
                )
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                delivery.attempts.append(type(error).__name__)
                return False
        delivery.attempts.append(str(response.status_code))
        return bool(response.is_success)
