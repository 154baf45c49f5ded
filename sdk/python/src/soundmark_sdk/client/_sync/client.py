# Generated from `../_async/client.py` by `make_blocking.py`: change that file, then run this program.
"""The client of the service's API."""

from typing import Self

import httpx2

from soundmark_sdk.client._sync.audience import Audience, Integrations
from soundmark_sdk.client._sync.billing import Billing, BillingCatalog, Subscriptions
from soundmark_sdk.client._sync.codes import Campaigns, Codes
from soundmark_sdk.client._sync.platform import Platform
from soundmark_sdk.client._sync.sender import Sender
from soundmark_sdk.client._sync.support import Tickets
from soundmark_sdk.client._sync.tenancy import (
    ApiKeys,
    AuditLog,
    Invitations,
    Members,
    Organizations,
    Projects,
)
from soundmark_sdk.client._sync.webhooks import Webhooks
from soundmark_sdk.client.api_connection import ApiConnection, Credential
from soundmark_sdk.client.calls import make_certificate_call, make_decode_certificate_call, make_get
from soundmark_sdk.client.dispatcher import Dispatcher, Limits, TenantIds
from soundmark_sdk.client.issuer import Issuer
from soundmark_sdk.client.records import Caller, DecodeCertificate, DeletionCertificate, Usage
from soundmark_sdk.client.recovery import MemoryRecoveryStore, RecoveryStore
from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.http_exchange import ServiceConnection
from soundmark_sdk.keys import KeySet


class Client:
    """A client of one service with one credential. Use it as a context manager, or close it.

    `Client` is for blocking code and safe to share between threads; `AsyncClient` is for the tasks of one event loop.

    `credential` is an API key (`xak_…`), an access token, or a function that returns the current one at once; with
    None only certificates and the key history can be fetched. It goes over https only (plain http: loopback)
    and is never shown; redirects are not followed. A call that names no
    organisation or project uses `organization_id` and `project_id`, or those of the API key. `timeout_s` covers each
    request from connecting to the last byte, `download_timeout_s` each request that writes a file, and
    `deletion_timeout_s` each request that deletes a project or an organisation. `attempts_max` and `retry_wait_max_s`
    limit one call with its retries; only calls that are safe to repeat are repeated. `recovery` stores issuances until
    they are answered.

    Every method raises ClientFailure (`ApiProblem` when the service refused the call), and ValueError for a call that
    cannot be sent. Ids are those that the service gave; times have a time zone. Lists are newest first: `list` yields
    every record and fetches pages of `page_size`; `page` returns one page. `organization_id` and `project_id` may be
    left out; if neither the client nor an API key names them, TenantNotGiven (a ValueError) is raised.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential | None,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        recovery: RecoveryStore | None = None,
        timeout_s: float = 15.0,
        download_timeout_s: float = 300.0,
        deletion_timeout_s: float = 900.0,
        attempts_max: int = 6,
        retry_wait_max_s: float = 30.0,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https, an impossible credential, or an impossible limit."""
        limits = Limits(timeout_s, download_timeout_s, deletion_timeout_s, attempts_max, retry_wait_max_s)
        connection = ServiceConnection(
            base_url, owner="client", allow_insecure_http=allow_insecure_http, transport=transport
        )
        time = SystemClock() if clock is None else clock
        issuer = Issuer(MemoryRecoveryStore() if recovery is None else recovery, time, connection.base_url)
        dispatcher = Dispatcher(
            ApiConnection(connection, credential, time), limits, time, issuer, TenantIds(organization_id, project_id)
        )
        sender = Sender(dispatcher)
        self._address = connection.base_url
        self._sender = sender
        # Those of calls that name none; None: those of the API key.
        self.organization_id = organization_id
        self.project_id = project_id
        self.organizations = Organizations(sender)
        self.projects = Projects(sender)
        self.api_keys = ApiKeys(sender)
        self.members = Members(sender)
        self.invitations = Invitations(sender)
        self.audit_log = AuditLog(sender)
        self.codes = Codes(sender)
        self.campaigns = Campaigns(sender)
        self.integrations = Integrations(sender)
        self.audience = Audience(sender)
        self.billing = Billing(sender)
        self.subscriptions = Subscriptions(sender)
        self.catalog = BillingCatalog(sender)
        self.webhooks = Webhooks(sender)
        self.tickets = Tickets(sender)
        self.platform = Platform(sender)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A call that still waits in another thread gets a RuntimeError."""
        self._sender.close()

    def caller(self) -> Caller:
        """Return the person or API key of the credential. A key has an organisation and a project."""
        return self._sender.call(Caller, make_get("/v1/caller"))

    def usage(self, *, organization_id: str | None = None) -> Usage:
        """Return an organisation's usage this month, and its quota."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Usage, make_get("/v1/usage", **tenant))

    def get_deletion_certificate(self, certificate_id: str) -> DeletionCertificate:
        """Return the certificate of a completed deletion. The credential is not sent: the id is enough."""
        return self._sender.call(DeletionCertificate, make_certificate_call(certificate_id))

    def get_decode_certificate(self, certificate_id: str) -> DecodeCertificate:
        """Return a decode certificate. The credential is not sent: the id is enough."""
        return self._sender.call(DecodeCertificate, make_decode_certificate_call(certificate_id))

    def get_key_history(self) -> KeySet:
        """Return every key ever used for signing, to verify archives and certificates. The credential is not sent."""
        return self._sender.get_key_history()
