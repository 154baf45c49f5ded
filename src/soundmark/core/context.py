"""What a command may reach."""

from dataclasses import dataclass
from typing import Any

from soundmark.core.audit_chain import AuditChain
from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.custody import Custody
from soundmark.core.domain.scope import Role
from soundmark.core.platform_settings import PlatformSettings
from soundmark.kit.batching import Batcher
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.jobs import Queue
from soundmark.kit.paging import Cursors
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer


@dataclass(frozen=True, slots=True)
class Context:
    """What a command may reach: the running process's parts, wired once in `app`.

    `roles` finds the role of a person in an organisation, given as (organisation, subject). `issuances` issues Codes,
    in one queue for each organisation (`features.codes.issuing`).
    """

    base_url: str
    organizations_per_user: int
    db: Database
    roles: Batcher[tuple[str, str], Role | None]
    issuances: Batcher[Any, Any]
    clock: Clock
    entropy: Entropy
    custody: Custody
    chain: AuditChain
    platform_settings: PlatformSettings
    cursors: Cursors
    audio: AudioChannel
    audience: AudienceChannel
    sealer: Sealer
    queue: Queue


@dataclass(frozen=True, slots=True)
class WorkContext:
    """What a background job may reach: the parts of a worker, wired once in `worker`."""

    base_url: str
    db: Database
    clock: Clock
    entropy: Entropy
    sealer: Sealer
    platform_settings: PlatformSettings
    audience: AudienceChannel
