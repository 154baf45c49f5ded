"""A typed client of the service's API: `Client` for blocking code, `AsyncClient` for asyncio."""

from soundmark_sdk.client._async.client import AsyncClient as AsyncClient
from soundmark_sdk.client._sync.client import Client as Client
from soundmark_sdk.client.failures import AnswerMalformed as AnswerMalformed
from soundmark_sdk.client.failures import ApiProblem as ApiProblem
from soundmark_sdk.client.failures import ClientFailure as ClientFailure
from soundmark_sdk.client.failures import RefusedField as RefusedField
from soundmark_sdk.client.failures import ServiceUnreachable as ServiceUnreachable
from soundmark_sdk.client.failures import TenantNotGiven as TenantNotGiven
from soundmark_sdk.client.recovery import FileRecoveryStore as FileRecoveryStore
from soundmark_sdk.client.recovery import MemoryRecoveryStore as MemoryRecoveryStore
from soundmark_sdk.client.recovery import RecoveryStore as RecoveryStore
from soundmark_sdk.client.recovery import RememberedIssuance as RememberedIssuance
from soundmark_sdk.client.requests import UNCHANGED as UNCHANGED
from soundmark_sdk.client.requests import AuditFilters as AuditFilters
from soundmark_sdk.client.requests import CodeFilters as CodeFilters
from soundmark_sdk.client.requests import CodeOrder as CodeOrder
from soundmark_sdk.client.requests import IssueRequest as IssueRequest
from soundmark_sdk.client.requests import ReportFilters as ReportFilters
from soundmark_sdk.records import Intent as Intent
