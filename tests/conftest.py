"""Shared fixtures: each worker has one PostgreSQL, one audio component and one Core, and each test starts empty."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, cast

import pytest
import structlog
import uvloop
from hypothesis import HealthCheck, settings
from playwright.async_api import Browser, Page
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.audience.client import audience_settings
from support.billing.card_purchase import CARD_SECRET, sell_price
from support.billing.local_purchase import PRIVATE_KEY, PUBLIC_KEY, list_payments
from support.browser.chromium import Browsing, running_browser, watched
from support.database.connections import borrow, close_connections
from support.database.core_database import empty_core, read_signing_keys, restore_core
from support.database.empty_tables import empty_tables
from support.database.rival import Rival
from support.identity.oidc_issuer import CLIENT_ID, running_issuer
from support.outside.desk import configure_desk
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.command_server import close_command_server
from support.processes.current_output import CurrentOutput
from support.processes.fake_clock import FakeClock
from support.processes.leftovers import clean_temporary_folder
from support.processes.running_apps import running_audio, running_core, served_in_thread
from support.processes.secret_leaks import find_leaks, remember_secret
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.audience.app import create_app as create_audience_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

# The event loop that components are served with. The hook of pytest-asyncio for it would make it a parameter of each
# coroutine, and tests that have no such parameter would end the fixtures of the session.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

# As `kit.log` does it: a traceback never shows local variables, which may hold secrets.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    logger_factory=structlog.PrintLoggerFactory(file=cast("Any", CurrentOutput())),
)

# An example that takes long means a busy machine, not a fault.
settings.register_profile("soundmark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("soundmark")

# A run that a shell started in the background ignores Ctrl-C, and so do its children; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

_KEPT_BY_AUDIENCE = {"alembic_version", "proof_transition"}
BESIDE_CORE = "audience_beside_core"
_SHARED = "core_under_test"
_SPARE = "core_spare"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, and spare them from it afterwards.

    Next to nothing of them becomes garbage, and traversing them took a fifth of the time of every test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that leaves a secret in its captured log."""
    report = yield
    found = find_leaks("".join(text for title, text in report.sections if title.startswith("Captured")))
    if found and report.passed:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} left secrets in the log: {', '.join(secret[:8] for secret in found)}…"
    return report


@pytest.fixture(scope="session", autouse=True)
def clean_end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the last test of a worker if the session leaves a temporary file or a process behind."""
    tmp_path_factory.getbasetemp()  # Outside the folder: pytest keeps it.
    with clean_temporary_folder():
        try:
            yield
        finally:
            close_command_server()


@pytest.fixture(scope="session")
def cluster() -> Iterator[RunningCluster]:
    """The PostgreSQL of this worker."""
    with throwaway_cluster() as running:
        try:
            yield running
        finally:
            close_connections()


@pytest.fixture(scope="session")
def migrated_url(cluster: RunningCluster) -> Secret:
    """The URL of the shared Core's database, with its tables."""
    url = cluster.create_role_and_database(_SHARED)
    migrate(url, "soundmark.core")
    return url


@pytest.fixture(scope="session")
def spare_migrated_url(cluster: RunningCluster) -> Secret:
    """The URL of a second database of Core, with its tables."""
    url = cluster.create_role_and_database(_SPARE)
    migrate(url, "soundmark.core")
    return url


@pytest.fixture(scope="session")
def audio_url() -> Iterator[str]:
    """The URL of an audio component."""
    with running_audio() as url:
        yield url


@pytest.fixture(scope="session")
def session_clock() -> FakeClock:
    """The clock that all components of this worker share."""
    return FakeClock()


@pytest.fixture(scope="session")
def beside_core_url(cluster: RunningCluster) -> Secret:
    """The database of the Audience that the shared Core calls."""
    url = cluster.create_role_and_database(BESIDE_CORE)
    migrate(url, "soundmark.audience")
    return url


@pytest.fixture(scope="session")
def measuring_url(beside_core_url: Secret, session_clock: FakeClock) -> Iterator[str]:
    """The URL of that Audience: the real component on a real socket, with the same clock."""
    with served_in_thread(create_audience_app(audience_settings(beside_core_url), clock=session_clock)) as url:
        yield url


@pytest.fixture(scope="session")
def timely_audience_url(beside_core_url: Secret) -> Iterator[str]:
    """The URL of the same component on the machine's clock, for a Core that uses that clock too."""
    with served_in_thread(create_audience_app(audience_settings(beside_core_url))) as url:
        yield url


@pytest.fixture(scope="session")
async def session_sandbox(session_clock: FakeClock) -> AsyncIterator[RunningSandbox]:
    """The outside world of every shared Core. It sends no webhooks."""
    secrets = {"CARD_SECRET_KEY": CARD_SECRET, "LOCAL_PUBLIC_KEY": PUBLIC_KEY, "LOCAL_SECRET_KEY": PRIVATE_KEY}
    async with running_sandbox(clock=session_clock, **secrets) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def outside_urls(session_sandbox: RunningSandbox) -> dict[str, str]:
    """Where Core finds the stand-ins of other people's servers."""
    settings = session_sandbox.settings()
    return {"card_api_url": settings["CARD_API_URL"], "local_api_url": settings["LOCAL_API_URL"]}


@pytest.fixture(scope="session")
async def session_api(
    migrated_url: Secret, audio_url: str, measuring_url: str, outside_urls: dict[str, str], session_clock: FakeClock
) -> AsyncIterator[Api]:
    """One Core for all tests of a worker: starting it costs more than most tests."""
    settings = core_settings(migrated_url, audio_url=audio_url, audience_url=measuring_url, **outside_urls)
    async with running_core(settings, session_clock) as client:
        yield client


@pytest.fixture(scope="session")
def session_keys(migrated_url: Secret, session_api: Api) -> list[Any]:
    """The signing keys that the shared Core made when it started."""
    assert session_api is not None, "the keys are there once Core has started"
    return read_signing_keys(migrated_url)


@pytest.fixture
async def database_url(cluster: RunningCluster, migrated_url: Secret, session_keys: list[Any]) -> Secret:
    """The shared Core's database, and Audience's, with no content but the signing keys."""
    # In a thread: the shared Core may be inside a transaction, and must be able to finish it.
    await asyncio.to_thread(_empty_both, cluster, session_keys)
    return migrated_url


@pytest.fixture
def spare_database_url(cluster: RunningCluster, spare_migrated_url: Secret) -> Secret:
    """A migrated, empty database for a test that starts its own Core with its own keys."""
    with borrow(cluster.superuser_url_of(_SPARE)) as connection:
        empty_core(connection, kept={"alembic_version"})
    return spare_migrated_url


@pytest.fixture
def clock(session_clock: FakeClock) -> Iterator[FakeClock]:
    """A clock that the test can move."""
    yield session_clock
    session_clock.reset()


@pytest.fixture
def rival(database_url: Secret, cluster: RunningCluster) -> Rival:
    """A second connection, which alters rows and holds locks."""
    assert database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of(_SHARED))


@pytest.fixture
def measuring(database_url: Secret, cluster: RunningCluster) -> Rival:
    """A rival in the database of the Audience that the shared Core calls."""
    assert database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of(BESIDE_CORE))


@pytest.fixture
def api(session_api: Api, database_url: Secret, clock: FakeClock) -> Api:
    """The shared Core, called by its operator from this machine."""
    assert database_url is not None, "the database is empty"
    return Api(session_api.app, clock)


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project, which the operator owns."""
    return await make_tenant(api)


@pytest.fixture
async def outside(session_sandbox: RunningSandbox) -> AsyncIterator[RunningSandbox]:
    """The outside world, empty; it has nothing to complain about at the end, and no log has the id of a payment."""
    await session_sandbox.control("/reset")
    yield session_sandbox
    for payment in await list_payments(session_sandbox):
        remember_secret(payment["id"])
    complaints = await session_sandbox.complaints()
    await session_sandbox.control("/reset")  # A switch that was left would meet a test that does not ask for this.
    assert complaints == []


@pytest.fixture
async def card(outside: RunningSandbox, api: Api) -> RunningSandbox:
    """The card provider, with Core's secret key configured, and a price for sale."""
    assert (await put_setting(api, "card_secret_key", CARD_SECRET)).status == 200
    await sell_price(outside)
    return outside


@pytest.fixture
async def local(outside: RunningSandbox, api: Api) -> RunningSandbox:
    """The local provider, with Core's keys configured."""
    assert (await put_setting(api, "local_public_key", PUBLIC_KEY)).status == 200
    assert (await put_setting(api, "local_secret_key", PRIVATE_KEY)).status == 200
    return outside


@pytest.fixture
async def desk(outside: RunningSandbox, api: Api, rival: Rival) -> RunningSandbox:
    """The support desk of the platform, without conversations."""
    await configure_desk(rival, api, outside)
    return outside


@pytest.fixture(scope="session")
async def session_people(
    migrated_url: Secret,
    audio_url: str,
    measuring_url: str,
    outside_urls: dict[str, str],
    session_api: Api,
    session_clock: FakeClock,
) -> AsyncIterator[People]:
    """A second Core on the same database, where people sign in and the operator has no role."""
    assert session_api is not None, "the signing keys are there"
    async with running_issuer(session_clock) as issuer:
        urls = {"audio_url": audio_url, "audience_url": measuring_url, **outside_urls}
        settings = core_settings(migrated_url, **urls, oidc_issuer=issuer.url, oidc_client_id=CLIENT_ID)
        async with running_core(settings, session_clock) as client:
            yield People(client.other(token=None), issuer)


@pytest.fixture
def people(session_people: People, api: Api) -> People:
    """The people of an empty Core; `api` is another Core on the same database."""
    assert api is not None, "the database is empty"
    return session_people


@pytest.fixture(scope="session")
async def session_browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a worker; give such tests the mark `xdist_group("browser")`."""
    async with running_browser() as browser:
        yield browser


@pytest.fixture
async def browsing(session_browser: Browser) -> AsyncIterator[Browsing]:
    """Contexts and pages of the test, which fails if one of them complains."""
    async with watched(session_browser) as browsing:
        yield browsing


@pytest.fixture
async def page(browsing: Browsing) -> Page:
    """A page in a context of its own."""
    return await browsing.open_page()


def _empty_both(cluster: RunningCluster, signing_keys: list[Any]) -> None:
    restore_core(cluster.superuser_url_of(_SHARED), signing_keys)
    with borrow(cluster.superuser_url_of(BESIDE_CORE)) as connection:
        empty_tables(connection, kept=_KEPT_BY_AUDIENCE)
