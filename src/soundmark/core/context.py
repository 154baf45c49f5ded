"""What a command may reach."""

from dataclasses import dataclass
from typing import Any

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.domain.tenancy.scope import Role
from soundmark.core.live.audit_chain import AuditChain
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.batching import Batcher
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.jobs import Queue
from soundmark.kit.text.paging import Cursors


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every command may reach, whether a route, a job or the command line calls it. Made by `wiring` alone."""

    base_url: str
    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    platform_settings: PlatformSettings
    audience: AudienceChannel
    queue: Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext(Context):
    """What only the commands of requests reach: parts that a serving process keeps running.

    `roles` finds the role of a person in an organisation, given as (organisation, subject). `issuances` issues Codes,
    in one queue for each organisation.
    """

    organizations_per_user: int
    roles: Batcher[tuple[str, str], Role | None]
    issuances: Batcher[Any, Any]
    live_keyring: LiveKeyring
    chain: AuditChain
    cursors: Cursors
    audio: AudioChannel
