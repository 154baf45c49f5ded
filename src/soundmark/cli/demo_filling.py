"""`soundmark demo --fill`: an installation that looks used.

Everything is made through the public API, but the events of past days: their proofs would have to be of those days, so
they are written to Audience's database with its own statements.
"""

import asyncio
import http
import http.server
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import numpy as np
import psycopg
from soundmark_sdk import Intent
from soundmark_sdk.client import Client
from soundmark_sdk.client.records import Code
from soundmark_sdk.client.requests import IssueRequest

from soundmark.audience.domain.packing import RECEIVER_CLASSES, country_number
from soundmark.audience.store import ingestion
from soundmark.audience.store.ingestion import EventRow
from soundmark.cli import Refused
from soundmark.kit.clock import Clock
from soundmark.kit.postgres.transaction import Tx

Say = Callable[[str], None]

_PLAN: Final = "plan_demo_studio"
_CARD_OFFER: Final = "offer_demo_card"
_LOCAL_OFFER: Final = "offer_demo_prepaid"
_DAYS: Final = 30
_RETENTION_DAYS: Final = 90
_EVENTS_A_DAY: Final = 60
_WAIT_S: Final = 20
_POLL_S: Final = 0.1
_MS_OF_DAY: Final = 86_400_000
_WEEKEND: Final = {5, 6}
_COUNTRIES: Final = ("TN", "TN", "TN", "FR", "FR", "DE", "IT", None)
_INTENTS: Final = (
    Intent("link", "open", {"url": "https://example.org/breakfast-quiz", "title": "The breakfast quiz"}),
    Intent("link", "open", {"url": "https://example.org/playlist?now", "title": "What you are hearing"}),
    Intent("coupon", "show", {"code": "JASMIN", "title": "Two coffees for one", "place": "Café des Nattes"}),
    Intent("poll", "answer", {"question": "Should we play it again?", "answers": ["Yes", "No"]}),
)


@dataclass(frozen=True, slots=True)
class RunningService:
    """Where the service that is filled runs, as its up-file says."""

    base_url: str
    operator_token: str
    audience_database_urls: Sequence[str]  # Of each cell.
    sandbox_url: str | None

    def database_url_of(self, integration_id: str) -> str:
        """Return the URL of the database that has an integration.

        Raises: psycopg.Error.
        """
        for url in self.audience_database_urls[:-1]:
            with psycopg.connect(url) as connection:
                if connection.execute("SELECT 1 FROM integrations WHERE id = %s", [integration_id]).fetchone():
                    return url
        return self.audience_database_urls[-1]


def fill(service: RunningService, clock: Clock, say: Say) -> None:
    """Make three organisations with everything that the console can show. Running it again makes three more.

    Raises: Refused, ClientFailure.
    """
    with Client(service.base_url, service.operator_token) as client:
        if service.sandbox_url is not None:
            _sell(client)
        for name in ("Radio Nordlicht", "Cinéma du Port", "Musée de Carthage"):
            organization_id = client.organizations.create(name).id
            project_id = client.projects.create("On air", organization_id=organization_id).id
            client.projects.create("Rehearsal", organization_id=organization_id)
            with Client(
                service.base_url, service.operator_token, organization_id=organization_id, project_id=project_id
            ) as of_tenant:
                say(f"{name}: {organization_id}, {_Filling(of_tenant, service, clock, name).run(organization_id)}")
    if service.sandbox_url is None:
        say("No subscriptions and no tickets: they need the sandbox (soundmark up --sandbox).")


def _sell(client: Client) -> None:
    """Put a plan up for sale, by card and prepaid."""
    client.catalog.put_provider("card", enabled=True)
    client.catalog.put_provider("local", enabled=True)
    client.catalog.put_codes_plan(_PLAN, name="Studio", monthly_code_quota=5000, active=True)
    client.catalog.put_card_offer(_CARD_OFFER, plan_id=_PLAN, price_reference="price_sandbox_monthly", active=True)
    client.catalog.put_local_offer(_LOCAL_OFFER, plan_id=_PLAN, amount_minor=59_900, entitlement_months=1, active=True)


class _Filling:
    """What is made for one organisation."""

    def __init__(self, client: Client, service: RunningService, clock: Clock, name: str) -> None:
        self._client: Final = client
        self._service: Final = service
        self._name: Final = name
        self._now: Final = clock.now()
        self._codes_count = 0
        # Of the name alone, so that two runs look alike.
        self._chance: Final = np.random.default_rng(list(name.encode()))

    def run(self, organization_id: str) -> str:
        """Make everything, and return what there is now, in words."""
        sandbox_url = self._service.sandbox_url
        with _rejecting_consumer() as url:
            endpoint = self._client.webhooks.create(url)
            self._make_campaigns()
            self._make_access()
            events_count = self._measure(organization_id)
            subscriptions_count = 0 if sandbox_url is None else self._buy(sandbox_url)
            tickets_count = 0 if sandbox_url is None else self._ask_for_help()
            _wait_until(lambda: bool(self._client.webhooks.deliveries_page(endpoint.id, status="failed").data))
        return (
            f"{self._codes_count} Codes, {events_count:,} events in {_DAYS} days, {subscriptions_count} subscriptions, "
            f"{tickets_count} tickets, a failed webhook"
        )

    def _make_campaigns(self) -> None:
        """Make campaigns in every state, with Codes in every state."""
        day = timedelta(days=1)
        running = self._campaign("Breakfast quiz", self._now - 20 * day, self._now + 20 * day)
        ending = self._campaign("Spring appeal", self._now - 40 * day, None)
        stopped = self._campaign("Recalled advert", None, None)
        self._campaign("Summer festival", self._now + 40 * day, self._now + 60 * day)
        self._issue(running, 12, life=60 * day)
        self._issue(ending, 3, life=timedelta(seconds=30))
        revoked = self._issue(None, 4, life=30 * day)
        self._issue(stopped, 5, life=30 * day)
        self._client.codes.revoke_batch([code.xr_id for code in revoked[:2]])
        self._client.campaigns.stop(stopped)
        self._client.campaigns.update(ending, ends_at=self._now)
        self._client.campaigns.archive(ending)

    def _campaign(self, name: str, starts_at: datetime | None, ends_at: datetime | None) -> str:
        return self._client.campaigns.create(name, starts_at=starts_at, ends_at=ends_at).id

    def _issue(
        self, campaign_id: str | None, count: int, *, life: timedelta, integration_id: str | None = None
    ) -> tuple[Code, ...]:
        request = IssueRequest(
            issuer=self._name,
            expires_at=self._now + life,
            intent=_INTENTS[self._chance.integers(len(_INTENTS))],
            campaign_id=campaign_id,
            audience_integration_id=integration_id,
        )
        self._codes_count += count
        return tuple(self._client.codes.issue_batch(request, count).data)

    def _make_access(self) -> None:
        """Make API keys and invitations, some of which were withdrawn."""
        keys, invitations = self._client.api_keys, self._client.invitations
        keys.create(["codes:read", "codes:write"], expires_in_days=5)
        withdrawn = keys.create(["codes:read"])
        keys.revoke(withdrawn.id)
        invitations.create("programme@example.org", "admin")
        invitations.create("accounts@example.org", "billing")
        mistaken = invitations.create("traine@example.org", "member")
        invitations.revoke(mistaken.id)

    def _measure(self, organization_id: str) -> int:
        """Make a measured Code under a contract, and a month of its events; return their number."""
        self._client.catalog.put_audience_contract(
            organization_id,
            plan_id="plan_audience_contract",
            contract_reference=f"demo {organization_id}",
            status="active",
        )
        integration = self._client.integrations.create("contract", retention_days=_RETENTION_DAYS)
        codes = self._issue(None, 3, life=timedelta(days=60), integration_id=integration.id)
        return _store_events(
            self._service.database_url_of(integration.id),
            integration.id,
            [code.xr_id for code in codes],
            self._now,
            self._chance,
        )

    def _buy(self, sandbox_url: str) -> int:
        """Buy the plan by card and prepaid, and pay on the sandbox's pages; return the number of subscriptions."""
        with httpx2.Client(base_url=sandbox_url, trust_env=False, timeout=30) as sandbox:
            for offer_id, path, body in (
                (_CARD_OFFER, "/control/card/sessions/{}/pay", {}),
                (_LOCAL_OFFER, "/control/local/payments/{}", {"status": "SUCCESS"}),
            ):
                checkout = self._client.billing.create_checkout(offer_id)
                payment = urlsplit(checkout.checkout_url).path.rpartition("/")[2]
                paid = sandbox.post(path.format(payment), json=body)
                if not paid.is_success:
                    raise Refused(f"the sandbox answered {paid.status_code} to a payment")
        _wait_until(lambda: self._count_subscriptions() > 1)
        return self._count_subscriptions()

    def _count_subscriptions(self) -> int:
        return len(self._client.subscriptions.page().data)

    def _ask_for_help(self) -> int:
        questions: Mapping[str, str] = {
            "Our jingle is not heard": "We play it from 8 to 9, and no phone in the office opens the quiz.",
            "An invoice for May": "Could you send it to accounts@example.org?",
        }
        for subject, message in questions.items():
            self._client.tickets.create(subject, message)
        return len(questions)


@contextmanager
def _rejecting_consumer() -> Iterator[str]:
    """Serve a URL on this machine that wants no webhooks, so that a delivery fails at once."""

    class Gone(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(http.HTTPStatus.GONE)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gone) as server:
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hooks"
        finally:
            server.shutdown()
            thread.join()


def _wait_until(is_done: Callable[[], bool]) -> None:
    for _ in range(round(_WAIT_S / _POLL_S)):
        if is_done():
            return
        time.sleep(_POLL_S)
    raise Refused(f"the service did not finish its work within {_WAIT_S} s; see its log")


def _store_events(url: str, integration_id: str, xr_ids: list[str], now: datetime, chance: np.random.Generator) -> int:
    """Write events of the last days, most of them in the evening; return their number."""
    people = chance.integers(1 << 62, size=_EVENTS_A_DAY * 8)
    events = {
        # One person counts once a day for a Code.
        (day, int(chance.choice(people)), str(chance.choice(xr_ids))): int(
            chance.triangular(0, 0.8 * _MS_OF_DAY, _MS_OF_DAY - 1)
        )
        for number in range(1, _DAYS + 1)
        for day in [(now - timedelta(days=number)).date()]
        for _ in range(_EVENTS_A_DAY * (2 if day.weekday() in _WEEKEND else 1))
    }

    async def write() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            tx = Tx(connection)
            (source,) = await ingestion.find_sources(tx, [integration_id])
            codes = [(source.number, xr_id, None) for xr_id in xr_ids]
            numbers = {xr_id: number for _, xr_id, number in await ingestion.insert_codes(tx, codes)}
            await ingestion.insert_events(
                tx,
                [
                    EventRow(person, source.number, day, numbers[xr_id], at_ms, *_choose_receiver(chance))
                    for (day, person, xr_id), at_ms in events.items()
                ],
            )

    asyncio.run(write())
    return len(events)


def _choose_receiver(chance: np.random.Generator) -> tuple[int, int | None]:
    """Return the numbers of a class of receivers, mostly phones, and of a country."""
    receiver = min(int(chance.exponential()), len(RECEIVER_CLASSES) - 1)
    country = _COUNTRIES[chance.integers(len(_COUNTRIES))]
    return receiver, None if country is None else country_number(country)
