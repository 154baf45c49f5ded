"""What the Audience component answers, read and not believed."""

from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec
import structlog
from pydantic import ValidationError

from soundmark.core.domain.audience import (
    AudienceMode,
    Integration,
    WithSecret,
    may_be_integration_id,
)
from soundmark.core.problems import (
    AudienceUnavailable,
)
from soundmark.kit.private_call import (
    JSON_TYPE,
    PrivateAnswer,
)
from soundmark.kit.secret import Secret
from soundmark.kit.timestamps import parse_timestamp
from soundmark.wire.shape import Wire

_log: Final = structlog.get_logger()

S = TypeVar("S", bound="Answered")
W = TypeVar("W", bound=Wire)


class Answered(msgspec.Struct, frozen=True):
    """What Audience answers; a member that a later release adds is passed over."""


class IntegrationRow(Answered, frozen=True):
    """An integration."""

    id: str
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    core_key_id: str
    created_at: str
    secret_rotated_at: str | None
    revoked_at: str | None


class WithSecretRow(Answered, frozen=True):
    """An integration, and the secret that it was given just now."""

    integration: IntegrationRow
    hmac_secret: str


class IntegrationRows(Answered, frozen=True):
    """A page of integrations."""

    data: list[IntegrationRow]


class RetentionRow(Answered, frozen=True):
    """What a change of retention came to."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


class CoreKeyRow(Answered, frozen=True):
    """Which key an integration trusts now."""

    integration_id: str
    core_key_id: str


class OperationRow(Answered, frozen=True):
    """An operation that was applied."""

    id: str


class ModeUsageRow(Answered, frozen=True):
    """What was measured in one mode."""

    mode: AudienceMode
    events: int
    active_integrations: int


class UsageRow(Answered, frozen=True):
    """What was measured in a month."""

    modes: list[ModeUsageRow]


class LegacyDaysRow(Answered, frozen=True):
    """How many days were imported."""

    days: int


class PushedRow(Answered, frozen=True):
    """Who was told of a key, and after whom to go on."""

    data: list[str]
    next: str | None


def failed(reason: str, status: int | None = None) -> AudienceUnavailable:
    """What a caller is told of a fault of Audience; why it was one is logged."""
    _log.warning("audience_call_failed", reason=reason, status=status)
    return AudienceUnavailable()


def read(answer: PrivateAnswer, shape: type[S], status: HTTPStatus = HTTPStatus.OK) -> S:
    """The answer, which must be of this shape.

    Raises: AudienceUnavailable.
    """
    if answer.status != status or answer.media_type != JSON_TYPE:
        raise failed("refused", answer.status)
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Not the library's words: they may repeat what was answered.
        raise failed("malformed") from None


def read_whole(answer: PrivateAnswer, shape: type[W]) -> W:
    """The answer, which must be of this closed shape: it is passed on as it is, so there may be nothing else in it.

    Raises: AudienceUnavailable.
    """
    if answer.status != HTTPStatus.OK or answer.media_type != JSON_TYPE:
        raise failed("refused", answer.status)
    try:
        return shape.model_validate_json(answer.body)
    except ValidationError:
        raise failed("malformed") from None


def integration_of(row: IntegrationRow, organization_id: str, project_id: str) -> Integration:
    """The integration, which must be of this tenant and project whatever was answered.

    Raises: AudienceUnavailable.
    """
    if (row.organization_id, row.project_id) != (organization_id, project_id) or not may_be_integration_id(row.id):
        raise failed("of_another_tenant")
    try:
        created_at = parse_timestamp(row.created_at)
        secret_rotated_at, revoked_at = moment_of(row.secret_rotated_at), moment_of(row.revoked_at)
    except ValueError:
        raise failed("malformed") from None
    return Integration(
        id=row.id,
        organization_id=row.organization_id,
        project_id=row.project_id,
        mode=row.mode,
        retention_days=row.retention_days,
        core_key_id=row.core_key_id,
        created_at=created_at,
        secret_rotated_at=secret_rotated_at,
        revoked_at=revoked_at,
    )


def with_secret_of(row: WithSecretRow, organization_id: str, project_id: str) -> WithSecret:
    """`integration_of`, with its secret."""
    return WithSecret(integration_of(row.integration, organization_id, project_id), Secret(row.hmac_secret))


def moment_of(text: str | None) -> datetime | None:
    """A moment, or None."""
    return None if text is None else parse_timestamp(text)
