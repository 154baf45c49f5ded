"""The composition root of Core's worker: settings → Context → tasks."""

import contextlib
from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs as audience_control
from soundmark.core.features.billing.accounting import jobs as accounting
from soundmark.core.features.billing.catalog import jobs as billing_catalog
from soundmark.core.features.billing.checkouts import jobs as checkouts
from soundmark.core.features.billing.subscriptions import jobs as subscriptions
from soundmark.core.features.billing.webhooks import jobs as payment_webhooks
from soundmark.core.features.billing.webhooks.healing import keep_asking
from soundmark.core.features.codes.issuance import jobs as issuance
from soundmark.core.features.codes.signing_keys import jobs as signing_keys
from soundmark.core.features.log.integration.integrator import LogIntegrator
from soundmark.core.features.platform.abuse import jobs as abuse
from soundmark.core.features.platform.organizations import jobs as suspensions
from soundmark.core.features.platform.release import jobs as release
from soundmark.core.features.support.desk_webhook import jobs as desk_webhook
from soundmark.core.features.support.tickets import jobs as tickets
from soundmark.core.features.tenancy.audit_log import jobs as audit_log
from soundmark.core.features.tenancy.closure import jobs as closure
from soundmark.core.features.tenancy.invitations import jobs as invitations
from soundmark.core.features.webhooks.delivery import jobs as webhook_delivery
from soundmark.core.features.webhooks.delivery.dispatcher import dispatching
from soundmark.core.features.webhooks.fan_out import jobs as webhook_events
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.wiring import make_context
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.http.server.sockets import CannotListen
from soundmark.kit.metrics import serving_metrics
from soundmark.kit.postgres.jobs import WorkerFailed, jobs_app, open_database, run_worker
from soundmark.kit.tasks import running
from soundmark.settings import CoreJobsSettings

_NAME: Final = "soundmark-core-jobs"


async def run(settings: CoreJobsSettings) -> None:
    """Run Core's jobs until SIGTERM or SIGINT.

    Raises: WorkerFailed.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(serving_metrics(settings.jobs_metrics_port, settings.metrics_host))
        except CannotListen as refusal:
            raise WorkerFailed(f"{refusal}; SOUNDMARK_JOBS_METRICS_PORT chooses another port") from None
        await _run(settings)


async def _run(settings: CoreJobsSettings) -> None:
    """Raises: WorkerFailed."""
    ctx = make_job_context(settings)
    app = jobs_app(settings.core_database_url, application_name=_NAME, session=ctx.db.session)
    add_tasks(app, ctx)
    await open_database(ctx.db, "soundmark.core")
    try:
        chain = await _open_chain(ctx)
        async with (
            running("audit-chain", chain.keep_sealing()),
            dispatching(ctx, fan_out),
            running("log-integrator", LogIntegrator(ctx).keep_integrating()),
            running("local-payments", keep_asking(ctx)),
            running("release-evidence", _read_evidence(ctx)),
        ):
            await run_worker(app, ctx.db.session)
    finally:
        await ctx.cells.aclose()
        await ctx.card.aclose()
        await ctx.local.aclose()
        await ctx.accounting.aclose()
        await ctx.webhooks.aclose()
        await ctx.desk.aclose()
        await ctx.witnesses.aclose()
        await ctx.db.close()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` do the jobs of every feature."""
    for feature in (
        abuse,
        accounting,
        audit_log,
        audience_control,
        billing_catalog,
        checkouts,
        closure,
        desk_webhook,
        invitations,
        issuance,
        payment_webhooks,
        release,
        signing_keys,
        subscriptions,
        suspensions,
        tickets,
        webhook_delivery,
        webhook_events,
    ):
        feature.add_tasks(app, ctx)


async def _open_chain(ctx: Context) -> AuditChain:
    """Return the chain of the audit entries that jobs write.

    Raises: WorkerFailed.
    """
    chain = AuditChain(ctx.db, ctx.sealer, ctx.clock, ctx.entropy)
    try:
        await chain.open()
    except DatabaseUnavailable:
        raise WorkerFailed("the database does not answer") from None
    except SealBroken as broken:
        raise WorkerFailed(f"this master key does not open the key of the audit chain: {broken}") from None
    return chain


async def _read_evidence(ctx: Context) -> None:
    """Read the release evidence once, beside the jobs: a slow disk does not keep the worker from starting."""
    with contextlib.suppress(DatabaseUnavailable):  # The job reads it again within five minutes.
        await release.read_evidence(ctx)


def make_job_context(settings: CoreJobsSettings, *, clock: Clock | None = None) -> Context:
    """Return the context of jobs. Its database is not open yet."""
    return make_context(settings, application_name=_NAME, pool_size=settings.database_pool_size, clock=clock)
