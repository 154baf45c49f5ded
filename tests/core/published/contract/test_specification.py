"""Every route that the specification and the contract name is served and published, and no other.

The list is written down here and not derived, because the specification is no part of the code.
"""

import json
from typing import Final

from golden_files import golden_files
from support.api.operations import list_operations

from soundmark.wire.private import measurements

# API v1, "Endpoints", in its order. The providers' path segments are those of the contract, section 7.
SPECIFICATION: Final = """
GET    /v1/resolve/{broadcast_token}
GET    /v1/keys
POST   /v1/organizations
GET    /v1/organizations
PATCH  /v1/organizations/{organization_id}
DELETE /v1/organizations/{organization_id}
GET    /v1/organizations/{organization_id}/export
POST   /v1/projects
GET    /v1/projects
PATCH  /v1/projects/{project_id}
DELETE /v1/projects/{project_id}
GET    /v1/projects/{project_id}/export
POST   /v1/campaigns
GET    /v1/campaigns
PATCH  /v1/campaigns/{campaign_id}
POST   /v1/campaigns/{campaign_id}/archive
POST   /v1/campaigns/{campaign_id}/stop
GET    /v1/campaigns/{campaign_id}/summary
POST   /v1/codes
POST   /v1/codes/batch
POST   /v1/codes/recover
POST   /v1/codes/batch/recover
GET    /v1/codes
GET    /v1/codes/{xr_id}
POST   /v1/codes/{xr_id}/revoke
POST   /v1/codes/revoke-batch
GET    /v1/codes/{xr_id}/audio
POST   /v1/codes/audio-bundle
POST   /v1/api-keys
GET    /v1/api-keys
PATCH  /v1/api-keys/{api_key_id}
POST   /v1/api-keys/{api_key_id}/revoke
POST   /v1/api-keys/{api_key_id}/secret
POST   /v1/member-invitations
GET    /v1/member-invitations
POST   /v1/member-invitations/{invitation_id}/revoke
POST   /v1/member-invitations/accept
GET    /v1/members
PUT    /v1/members/{subject_id}
DELETE /v1/members/{subject_id}
GET    /v1/audit-log
GET    /v1/usage
GET    /v1/billing/offers
GET    /v1/billing/subscriptions
POST   /v1/billing/checkouts
GET    /v1/billing/checkouts/{checkout_id}
POST   /v1/billing/portal
POST   /v1/billing/webhooks/card
POST   /v1/billing/webhooks/local
GET    /v1/billing/admin/catalog
PUT    /v1/billing/admin/providers/{provider}
PUT    /v1/billing/admin/plans/{plan_id}
PUT    /v1/billing/admin/offers/{offer_id}
PUT    /v1/billing/admin/audience-contracts/{organization_id}
PUT    /v1/billing/admin/dolibarr/customers/{organization_id}
POST   /v1/support/tickets
GET    /v1/support/tickets
GET    /v1/support/tickets/{ticket_id}
POST   /v1/support/webhooks/desk
GET    /v1/platform/settings
PUT    /v1/platform/settings/secrets/{name}
PUT    /v1/platform/settings/configuration/{name}
GET    /v1/platform/release-readiness
POST   /v1/audience/integrations
GET    /v1/audience/integrations
PATCH  /v1/audience/integrations/{integration_id}
POST   /v1/audience/integrations/{integration_id}/revoke
POST   /v1/audience/integrations/{integration_id}/secret
PATCH  /v1/audience/integrations/{integration_id}/retention
POST   /v1/audience/integrations/{integration_id}/core-key
GET    /v1/audience/reports/{integration_id}
GET    /v1/audience/legacy-report
GET    /v1/reports/{integration_id}
POST   /v1/events
"""
# What the contract adds: sections 2, 3, 7, 8, 9 and 11 to 13.
CONTRACT: Final = """
GET    /v1/caller
GET    /v1/audit-log/verification
GET    /v1/keys/history
GET    /v1/organizations/{organization_id}/closure-preflight
GET    /v1/projects/{project_id}/closure-preflight
GET    /v1/deletion-certificates/{certificate_id}
GET    /v1/log
GET    /v1/log/checkpoint
GET    /v1/log/tile/entries/{number}
GET    /v1/log/tile/{level}/{number}
GET    /v1/log/proofs/{digest}
GET    /v1/billing/webhooks/local
POST   /v1/billing/webhooks/local/{secret}
GET    /v1/billing/webhooks/local/{secret}
POST   /v1/webhook-endpoints
GET    /v1/webhook-endpoints
GET    /v1/webhook-endpoints/{endpoint_id}
PATCH  /v1/webhook-endpoints/{endpoint_id}
DELETE /v1/webhook-endpoints/{endpoint_id}
POST   /v1/webhook-endpoints/{endpoint_id}/secret
POST   /v1/webhook-endpoints/{endpoint_id}/test
GET    /v1/webhook-endpoints/{endpoint_id}/deliveries
POST   /v1/webhook-endpoints/{endpoint_id}/replay
GET    /v1/webhook-events/{event_id}
GET    /v1/projects/{project_id}/allowed-hosts
PUT    /v1/projects/{project_id}/allowed-hosts
GET    /v1/platform/organizations
PUT    /v1/platform/organizations/{organization_id}/suspension
DELETE /v1/platform/organizations/{organization_id}/suspension
POST   /v1/codes/{xr_id}/decode-certificates
GET    /v1/decode-certificates/{certificate_id}
POST   /v1/offline-packs
POST   /v1/abuse-reports
GET    /v1/platform/abuse-reports
PUT    /v1/platform/abuse-reports/{report_id}
"""
# What neither has, and the console needs: giving up a purchase (docs/adr/0055), a reply (docs/adr/0054), and what
# administrators of the platform see of its systems and jobs.
BEYOND: Final = """
GET    /v1/billing/checkouts
POST   /v1/billing/checkouts/{checkout_id}/cancel
POST   /v1/support/tickets/{ticket_id}/messages
POST   /v1/platform/systems/{system}/test
GET    /v1/platform/jobs
POST   /v1/platform/jobs/{job_id}/retry
"""
# API v1, "Versioning" 1: it takes an operator's credentials.
UNPUBLISHED: Final = {"PUT /v1/platform/settings/secrets/{name}"}
# Contract, section 6: Audience's own, under the internal credential, and never reached through Core.
OF_AUDIENCE: Final = {"GET /v1/reports/{integration_id}"}


def read_routes(text: str) -> list[str]:
    """Return the routes of a list above, each as its method and its path with one space between."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def test_core_serves_the_routes_of_specification_and_contract_and_no_other() -> None:
    named = [*read_routes(SPECIFICATION), *read_routes(CONTRACT), *read_routes(BEYOND)]
    assert len(named) == len(set(named))
    assert sorted(map(str, list_operations())) == sorted(set(named) - OF_AUDIENCE)


def test_the_document_leaves_out_the_private_ones_alone() -> None:
    document = json.loads(golden_files()["openapi.json"])
    published = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    served = {str(operation) for operation in list_operations()}
    assert served - published == UNPUBLISHED
    assert published <= served


def test_audience_serves_its_own() -> None:
    call = measurements.READ_REPORT
    assert {f"{call.method} {call.path}"} == OF_AUDIENCE
