"""The cost of refusing an event with a wrong signature, compared with recording one."""

import asyncio
import json
import secrets
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path
from statistics import median
from string import ascii_letters
from tempfile import TemporaryDirectory
from typing import Final

import httpx2

from bench.figures import Figure, ratio_of_rounds
from bench.ingestion import EVENTS, audience
from bench.measuring import INTEGRATION_ID, measured, write_events
from bench.service import Service
from soundmark.embedded.postgres import RunningCluster

_ROUNDS: Final = 5
_EACH: Final = 1_000
_CONNECTIONS: Final = 16
_UNKNOWN_MEMBERS: Final = 2_280  # As many as the 16 KiB of an event hold, as sent in the security review.
_UNLIMITED: Final = {"SOUNDMARK_REFUSAL_RATE_LIMIT": "1000000000"}


def refused_events(cluster: RunningCluster) -> list[Figure]:
    """Measure Audience's processor time per event: recorded, refused, and refused with 2,280 unknown members."""
    database = measured(cluster, "refused", 10_000)
    with audience(database, more=_UNLIMITED) as service, TemporaryDirectory() as folder:
        path = Path(folder, "events")
        write_events(path, (2 * _ROUNDS + 1) * _EACH)
        signed = [line.split(" ", 1) for line in path.read_text().splitlines()]
        batches = [signed[at : at + _EACH] for at in range(0, len(signed), _EACH)]
        _processor_ms(service, batches.pop())
        recorded, refused, hostile = [], [], []
        for _ in range(_ROUNDS):
            recorded.append(_processor_ms(service, batches.pop()))
            refused.append(_processor_ms(service, [(_wrong(), body) for _, body in batches.pop()]))
            hostile.append(_processor_ms(service, [(_wrong(), _hostile_body()) for _ in range(_EACH)]))
    reference = f"recorded: {median(recorded):.2f} ms"
    return [
        _figure("Event with a wrong signature", refused, recorded, reference, 1),
        _figure("The same with 2,280 unknown members", hostile, recorded, reference, 3),
    ]


def _figure(
    name: str, costs_ms: Sequence[float], recorded_ms: Sequence[float], reference: str, target: float
) -> Figure:
    value = ratio_of_rounds(costs_ms, recorded_ms)
    return Figure(name, f"{median(costs_ms):.2f} ms of processor time", reference, value, "at most", target)


def _wrong() -> str:
    return secrets.token_hex(32)


def _hostile_body() -> str:
    names = islice(map("".join, product(ascii_letters, repeat=2)), _UNKNOWN_MEMBERS)
    return json.dumps({"integration_id": INTEGRATION_ID, **dict.fromkeys(names, 1)}, separators=(",", ":"))


def _processor_ms(service: Service, deliveries: Sequence[Sequence[str]]) -> float:
    """Deliver on a few connections at once; return the processor time that the service spent on each event."""
    before_s = service.processor_s()
    asyncio.run(_deliver(service.base_url, deliveries))
    return (service.processor_s() - before_s) / len(deliveries) * 1e3


async def _deliver(base_url: str, deliveries: Sequence[Sequence[str]]) -> None:
    waiting = iter(deliveries)
    limits = httpx2.Limits(max_connections=_CONNECTIONS)

    async def work(client: httpx2.AsyncClient) -> None:
        for signature, body in waiting:
            headers = {"Content-Type": "application/json", "X-Svc-Signature": f"sha256={signature}"}
            status = (await client.post(EVENTS, content=body.encode(), headers=headers)).status_code
            if status not in {201, 401}:
                raise RuntimeError(f"an event was answered {status}")

    async with httpx2.AsyncClient(base_url=base_url, limits=limits, timeout=30) as client:
        await asyncio.gather(*(work(client) for _ in range(_CONNECTIONS)))
