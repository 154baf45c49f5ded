"""The parts of a process that commands may use."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soundmark.core.channel.audio import AudioChannel
from soundmark.core.channel.cells import Cells
from soundmark.core.domain.log.state import Transparency
from soundmark.core.domain.tenancy.scope import Role
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.live.integration_cells import IntegrationCells
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.core.providers.dolibarr.client import AccountingClient
from soundmark.core.providers.flouci.client import LocalProvider
from soundmark.core.providers.freescout.client import DeskClient
from soundmark.core.providers.stripe.client import CardProvider
from soundmark.core.providers.witnesses import WitnessClient
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.limits.local import RateLimit
from soundmark.kit.http.outbound.guarded_client import GuardedClient
from soundmark.kit.http.requests.public_limit import PublicRateLimit
from soundmark.kit.postgres.batching import Batcher
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.job_queue import Queue
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.postgres.promotions import Promotions
from soundmark.kit.postgres.shared_connection import SharedConnection
from soundmark.kit.slots import Slots, Turns
from soundmark.kit.text.paging import Cursors


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts that every command may use, whether called by a route, a job or the command line. Made by `wiring`.

    `console_url` is where people accept invitations, and come back to from a provider's page. `accounting_currency` is
    the only one in which the accounting system makes invoices. `smtp_greeting` is the name by which mail servers are
    greeted, None for the address of the connection. `extra_ca_file` holds authorities that mail servers may
    be certified by. `local_verifications_per_minute` is how often all processes together may ask the local provider
    about payments. `webhook_allow_loopback` is whether an organisation's webhooks may go to this machine; `webhooks`
    sends them. `release_evidence_path` is the file that the worker reads about the SDK's release. `promotions` makes
    commands that revoke outlast the leases of processes that may still read an old primary. `transparency` says how
    the log is kept, and `witnesses` calls those who cosign it.
    """

    base_url: str
    console_url: str
    accounting_currency: str
    smtp_greeting: str | None
    extra_ca_file: Path | None
    release_evidence_path: Path | None
    local_verifications_per_minute: int
    webhook_allow_loopback: bool
    db: Database
    promotions: Promotions
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    platform_settings: PlatformSettings
    cells: Cells
    card: CardProvider
    local: LocalProvider
    accounting: AccountingClient
    webhooks: GuardedClient
    desk: DeskClient
    transparency: Transparency
    witnesses: WitnessClient
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext(Context):
    """The parts that only commands of requests may use, because only a serving process runs them.

    `reads` asks for what a request needs before its tenant is known. `roles` finds a person's role in an organisation
    by (organisation, subject). `issuances` issues Codes, with one queue for each organisation, in transactions of
    `pipelined`, which also reads pages of lists. `exports` limits the exports that run at a time, with one for each
    organisation; `packs` does so for offline packs, `webhook_tests` for the messages that test an endpoint, and
    `webhook_test_limit` limits them by time; `system_tests` and `system_test_limit` do so for tests of systems, by
    name.
    `local_questions` are those under way to the local provider for a notification, by the payment's id. By client IP
    address, `local_notification_limit` limits these notifications, and by organisation the questions of those who give
    up a purchase; `certificate_limit` limits who reads decode certificates, and `log_proof_limit` requests for proofs.
    `webhook_replays` lets one replay of an organisation have a connection at a time. With `support_native_signature`,
    the desk signs webhooks in its own way.
    """

    organizations_per_user: int
    export_bytes_max: int
    support_native_signature: bool
    reads: SharedConnection
    roles: Batcher[tuple[str, str], Role | None]
    issuances: Batcher[Any, Any]
    pipelined: PipelinedTransactions
    exports: Slots
    packs: Slots
    webhook_tests: Slots
    webhook_test_limit: RateLimit
    system_tests: Slots
    system_test_limit: RateLimit
    certificate_limit: PublicRateLimit
    log_proof_limit: PublicRateLimit
    local_questions: dict[str, asyncio.Task[Any]]
    local_notification_limit: RateLimit
    webhook_replays: Turns
    integration_cells: IntegrationCells
    live_keyring: LiveKeyring
    chain: AuditChain
    cursors: Cursors
    audio: AudioChannel
