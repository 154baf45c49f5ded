"""From settings to contexts: the only place where the parts of Core are put together."""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.channel.cells import Cell, Cells, CellSource
from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.billing.local_limit import limit_of_address
from soundmark.core.domain.log.state import LOG_PATH, Transparency, Witness
from soundmark.core.features.codes.issuance.issue_group import IssueResult, QueuedRequest, issue_group
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.live.integration_cells import IntegrationCells
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.core.problems import AudienceUnavailable, AudioUnavailable
from soundmark.core.providers.dolibarr.client import AccountingClient
from soundmark.core.providers.flouci.client import LocalProvider
from soundmark.core.providers.freescout.client import DeskClient
from soundmark.core.providers.smtp import find_greeting
from soundmark.core.providers.stripe.client import CardProvider
from soundmark.core.providers.witnesses import WitnessClient
from soundmark.core.store.tenancy import members
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.http.limits.factory import make_rate_limit, make_shared_keys
from soundmark.kit.http.limits.shared_keys import SharedKeys
from soundmark.kit.http.outbound.guarded_client import GuardedClient
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateComponent
from soundmark.kit.http.requests.public_limit import PublicRateLimit
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.postgres.batching import Batcher
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.job_queue import Queue
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.promotions import Promotions
from soundmark.kit.postgres.sessions import STATEMENT_TIMEOUT_S, SessionOptions
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.slots import Slots, Turns
from soundmark.kit.text.paging import Cursors
from soundmark.settings.cells import MAIN_CELL, find_version, read_cells
from soundmark.settings.core import (
    AudienceChannelSettings,
    CoreDatabaseSettings,
    CoreJobsSettings,
    CoreSettings,
    KeysSettings,
    PrivateSettings,
)
from soundmark.settings.transparency import read_witnesses

_SERVED: Final = "soundmark-core"  # The name of a serving process in PostgreSQL and in the logs of private components.
WiredSettings: TypeAlias = CoreDatabaseSettings

_BATCH_MAX: Final = 256  # Codes in one commit, some 50 ms for which a campaign's stop waits; roles in one query.
_WAITING_MAX: Final = 4096  # In one queue; beyond it the database is not keeping up.
_WEBHOOK_CONNECTIONS_MAX: Final = 512  # The dispatcher has no more attempts under way.
_WEBHOOK_TESTS_AT_ONCE: Final = 16
_WEBHOOK_TESTS_PER_MINUTE: Final = 30
_SYSTEM_TESTS_AT_ONCE: Final = 4  # One of each system.
_SYSTEM_TESTS_PER_MINUTE: Final = 10
_EXPORTS_AT_ONCE: Final = 4  # Each holds a connection while its archive is written; others wait for their turn.
_PACKS_AT_ONCE: Final = 2  # Each may have 200 MB for some seconds.


class _NotWired:
    """A stand-in for a part that the settings of this process do not configure."""

    def __init__(self, part: str) -> None:
        self._part: Final = part

    async def aclose(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a command used {self._part}.{name}, which the settings of this process do not configure")


def make_context(
    settings: WiredSettings,
    *,
    application_name: str,
    pool_size: int,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Context:
    """Return the context of commands in a process with these settings. Its database is not open yet.

    Jobs have every part. Command-line tools have the parts that their settings configure; using another part is an
    assertion failure.
    """
    return Context(**_parts(settings, application_name, pool_size, clock or SystemClock(), entropy or SystemEntropy()))


def make_request_context(
    settings: CoreSettings, *, clock: Clock | None = None, entropy: Entropy | None = None
) -> RequestContext:
    """Return the context of commands in a process that serves requests. Nothing in it is open or running yet."""
    parts = _parts(settings, _SERVED, settings.database_pool_size, clock or SystemClock(), entropy or SystemEntropy())
    db, sealer, its_clock = parts["db"], parts["sealer"], parts["clock"]
    reads = SharedConnection(db, timeout_s=STATEMENT_TIMEOUT_S, planning="once")
    audio = PrivateComponent("audio", settings.audio_url, settings.audio_credential[0], AudioUnavailable)

    def shared_keys(key_prefix: bytes) -> SharedKeys | None:
        return make_shared_keys(
            settings.rate_limit_url, key_prefix=key_prefix, clock=its_clock, entropy=parts["entropy"]
        )

    def limited_as_resolution(name: str) -> PublicRateLimit:
        quota, window_s = settings.resolve_rate_limit, settings.resolve_rate_window_s
        key_prefix = f"soundmark:{name}:".encode()
        limit = make_rate_limit(settings.rate_limit_url, quota, window_s, key_prefix=key_prefix, clock=its_clock)
        return PublicRateLimit(name, limit, quota=quota, window_s=window_s)

    async def issue(requests: Sequence[QueuedRequest]) -> list[IssueResult | Problem]:
        return await issue_group(ctx, requests)

    ctx = RequestContext(
        **parts,
        organizations_per_user=settings.organizations_per_user,
        export_bytes_max=settings.export_bytes_max,
        support_native_signature=settings.support_native_signature,
        reads=reads,
        roles=Batcher(partial(members.find_roles, reads), size_max=_BATCH_MAX, waiting_max=_WAITING_MAX),
        pipelined=PipelinedTransactions(db, size=settings.database_pool_size),
        issuances=Batcher(issue, size_max=_BATCH_MAX, waiting_max=_WAITING_MAX),
        exports=Slots(min(_EXPORTS_AT_ONCE, settings.database_pool_size // 2), shared_keys(b"soundmark:exports:")),
        packs=Slots(min(_PACKS_AT_ONCE, settings.database_pool_size // 2), shared_keys(b"soundmark:offline-packs:")),
        webhook_tests=Slots(_WEBHOOK_TESTS_AT_ONCE, shared_keys(b"soundmark:webhook-tests-running:")),
        webhook_test_limit=make_rate_limit(
            settings.rate_limit_url,
            _WEBHOOK_TESTS_PER_MINUTE,
            60,
            key_prefix=b"soundmark:webhook-tests:",
            clock=its_clock,
        ),
        system_tests=Slots(_SYSTEM_TESTS_AT_ONCE, shared_keys(b"soundmark:system-tests-running:")),
        system_test_limit=make_rate_limit(
            settings.rate_limit_url,
            _SYSTEM_TESTS_PER_MINUTE,
            60,
            key_prefix=b"soundmark:system-tests:",
            clock=its_clock,
        ),
        certificate_limit=limited_as_resolution("decode-certificates"),
        log_proof_limit=limited_as_resolution("log-proofs"),
        local_questions={},
        local_notification_limit=make_rate_limit(
            settings.rate_limit_url,
            limit_of_address(settings.local_verifications_per_minute),
            60,
            key_prefix=b"soundmark:local-payments:",
            clock=its_clock,
        ),
        webhook_replays=Turns(),
        integration_cells=IntegrationCells(db),
        live_keyring=LiveKeyring(db, sealer, its_clock),
        chain=AuditChain(db, sealer, its_clock, parts["entropy"]),
        cursors=Cursors(sealer.derive("cursors")),
        audio=AudioChannel(_open_channel(settings, audio, _SERVED)),
    )
    return ctx


def _parts(
    settings: WiredSettings, application_name: str, pool_size: int, clock: Clock, entropy: Entropy
) -> dict[str, Any]:
    db = Database(
        settings.core_database_url,
        pool_size=pool_size,
        application_name=application_name,
        session=SessionOptions(settings.synchronous_commit, settings.database_options),
    )
    parts: dict[str, Any] = {field.name: _NotWired(field.name) for field in fields(Context)}
    parts |= {"db": db, "promotions": Promotions(clock), "clock": clock, "entropy": entropy, "queue": Queue()}
    if isinstance(settings, KeysSettings):
        parts["sealer"] = Sealer(parse_master_key(settings.master_key.reveal()), entropy)
    if isinstance(settings, AudienceChannelSettings):
        parts["cells"] = _cells(settings, application_name, clock)
    if isinstance(settings, CoreJobsSettings):
        parts |= _parts_of_jobs(settings, PlatformSettings(db, parts["sealer"], settings))
    return parts


def _parts_of_jobs(settings: CoreJobsSettings, platform_settings: PlatformSettings) -> dict[str, Any]:
    """Return the parts that jobs and requests have, and tools do not."""
    extra_ca_file = settings.extra_ca_file
    return {
        "base_url": settings.base_url,
        "console_url": settings.console_url or settings.base_url,
        "accounting_currency": settings.accounting_currency,
        "smtp_greeting": settings.smtp_greeting or find_greeting(settings.base_url),
        "extra_ca_file": extra_ca_file,
        "release_evidence_path": settings.release_evidence_path,
        "local_verifications_per_minute": settings.local_verifications_per_minute,
        "webhook_allow_loopback": settings.webhook_allow_loopback,
        "platform_settings": platform_settings,
        "card": CardProvider(settings.card_api_url, platform_settings, extra_ca_file=extra_ca_file),
        "local": LocalProvider(settings.local_api_url, platform_settings, extra_ca_file=extra_ca_file),
        "accounting": AccountingClient(extra_ca_file=extra_ca_file),
        "webhooks": GuardedClient(
            connections_max=_WEBHOOK_CONNECTIONS_MAX,
            allow_loopback=settings.webhook_allow_loopback,
            extra_ca_file=extra_ca_file,
        ),
        "desk": DeskClient(extra_ca_file=extra_ca_file),
        "transparency": _transparency(settings),
        "witnesses": WitnessClient(extra_ca_file=extra_ca_file),
    }


def _transparency(settings: CoreJobsSettings) -> Transparency:
    file, origin = settings.transparency_witnesses, settings.transparency_origin
    return Transparency(
        origin=settings.base_url.partition("://")[2].lower() + LOG_PATH if origin is None else origin,
        witnesses=() if file is None else tuple(Witness(each.key, each.url) for each in read_witnesses(file)),
        quorum=settings.transparency_quorum,
    )


def _cells(settings: AudienceChannelSettings, caller: str, clock: Clock) -> Cells:
    source = _cells_of_file(settings.audience_cells_file) if settings.audience_cells_file else _only_cell(settings)

    def connect(cell: Cell) -> AudienceChannel:
        name = cell.name if source.is_divided else None
        component = PrivateComponent("audience", cell.url, cell.credential, AudienceUnavailable, name)
        return AudienceChannel(_open_channel(settings, component, caller))

    return Cells(source, connect, clock)


def _only_cell(settings: AudienceChannelSettings) -> CellSource:
    """Return the one cell of a deployment without a file."""
    assert settings.audience_url is not None, "without a file of cells, this is set"
    assert settings.audience_credential is not None, "without a file of cells, this is set"
    cell = Cell(MAIN_CELL, settings.audience_url, settings.audience_credential[0], takes_new=True)
    return CellSource(lambda: None, lambda: [cell], is_divided=False)


def _cells_of_file(file: Path) -> CellSource:
    def read() -> list[Cell]:
        return [Cell(each.name, each.url, each.credential[0], takes_new=each.takes_new) for each in read_cells(file)]

    return CellSource(partial(find_version, file), read, is_divided=True)


def _open_channel(settings: PrivateSettings, component: PrivateComponent, caller: str) -> PrivateChannel:
    """Return a channel to a private component; `caller` names this process in the component's log."""
    return PrivateChannel(
        component,
        caller=caller,
        timeout_s=settings.private_timeout_s,
        bytes_max=settings.private_response_bytes_max,
        extra_ca_file=settings.extra_ca_file,
    )
