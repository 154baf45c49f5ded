"""What a program does with the Python client that was generated: it resolves, issues, lists, renders and is refused.

Run in the environment of the generator, which has what such a client needs. Says what it saw as JSON.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any

from soundmark_client import AuthenticatedClient, Client
from soundmark_client.api.codes import bundle_codes, get_code, issue_code, list_codes, render_code, revoke_code
from soundmark_client.api.organizations import list_organizations
from soundmark_client.api.receivers import list_key_history, list_keys, resolve
from soundmark_client.models import (
    BundleCodes,
    CodeDetail,
    CodeIssued,
    CodePage,
    CreateCode,
    Intent,
    IntentResource,
    KeyHistory,
    KeySet,
    Problem,
    Resolution,
    ResolveXSvcResolutionProof,
)
from soundmark_client.types import UNSET, File

GIVEN = json.loads(os.environ["GIVEN"])
TENANT = {"organization_id": GIVEN["organization_id"]}


def run() -> dict[str, Any]:
    """Return what each call was answered, as far as the test has something to compare it with."""
    receiver = Client(base_url=GIVEN["base_url"])
    issuer = AuthenticatedClient(base_url=GIVEN["base_url"], token=GIVEN["token"])
    codes = [issue(issuer) for _ in range(3)]
    first = codes[0]
    resolution = resolve.sync(
        first.broadcast_token, client=receiver, x_svc_resolution_proof=ResolveXSvcResolutionProof.ED25519_V1
    )
    assert isinstance(resolution, Resolution)
    keys, history = list_keys.sync(client=receiver), list_key_history.sync(client=receiver)
    assert isinstance(keys, KeySet)
    assert isinstance(history, KeyHistory)
    wav = render_code.sync(first.xr_id, client=issuer, **TENANT)
    assert isinstance(wav, File)
    selection = BundleCodes(xr_ids=[code.xr_id for code in codes])
    archive = bundle_codes.sync(client=issuer, body=selection, project_id=GIVEN["project_id"], **TENANT)
    assert isinstance(archive, File)
    revoked = revoke_code.sync(first.xr_id, client=issuer, **TENANT)
    assert isinstance(revoked, CodeDetail)
    detail = get_code.sync(first.xr_id, client=issuer, **TENANT)
    assert isinstance(detail, CodeDetail)
    unavailable = resolve.sync(first.broadcast_token, client=receiver)
    assert isinstance(unavailable, Problem)
    unauthenticated = list_organizations.sync_detailed(client=AuthenticatedClient(GIVEN["base_url"], token="nobody"))
    assert isinstance(unauthenticated.parsed, Problem)
    return {
        "issued": [code.xr_id for code in codes],
        "listed": page_through(issuer),
        "intent": resolution.intent.to_dict(),
        "proof_key": resolution.resolution_proof.key_id,
        "keys": [key.kid for key in keys.keys],
        "history": [key.kid for key in history.keys],
        "wav": wav.payload.read(4).decode(),
        "zip": archive.payload.read(2).decode(),
        "status": [revoked.status, detail.status],
        "problems": [unavailable.code, unauthenticated.parsed.code],
    }


def issue(client: AuthenticatedClient) -> CodeIssued:
    """Issue the Code that the test asks for."""
    request = CreateCode(
        **TENANT,
        project_id=GIVEN["project_id"],
        issuer="Radio Nordlicht",
        expires_at=datetime.now(UTC) + timedelta(days=1),
        intent=Intent(
            type_=GIVEN["intent"]["type"],
            action=GIVEN["intent"]["action"],
            resource=IntentResource.from_dict(GIVEN["intent"]["resource"]),
        ),
    )
    issued = issue_code.sync(client=client, body=request)
    assert isinstance(issued, CodeIssued), issued
    return issued


def page_through(client: AuthenticatedClient) -> list[str]:
    """Return the ids of every Code, a page of two at a time."""
    listed: list[str] = []
    cursor: Any = UNSET
    while True:
        page = list_codes.sync(client=client, limit=2, cursor=cursor, **TENANT)
        assert isinstance(page, CodePage), page
        listed += [code.xr_id for code in page.data]
        if page.next_cursor is None:
            return listed
        cursor = page.next_cursor


print(json.dumps(run()))  # noqa: T201 - what the test reads
