"""The command that tests an endpoint."""

from dataclasses import dataclass

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.attempt import BAD_STATUS, is_success
from soundmark.core.domain.webhooks.event import EVENT_PREFIX, TEST_TYPE, WebhookEvent
from soundmark.core.features.webhooks.delivery.sending import send
from soundmark.core.problems import WebhookEndpointNotFound
from soundmark.core.steps.tenancy import hold_authority
from soundmark.core.steps.webhook_secrets import SealedSecrets
from soundmark.core.store.webhooks import dispatch
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.text.ids import mint


@dataclass(frozen=True, slots=True)
class WebhookTest:
    """What came back from an endpoint."""

    status_code: int | None
    duration_ms: int
    error: str | None


async def test_endpoint(ctx: RequestContext, scope: TenantScope, endpoint_id: str) -> WebhookTest:
    """Send `webhook.test` to an endpoint, enabled or not, and return what came back. Nothing is stored or repeated.

    Raises: WebhookEndpointNotFound; RateLimited while another test of the organisation is under way, and after too many
        in a minute, so that a test is no way to flood anybody; what `hold_authority` raises.
    Source: contract, section 9.
    """
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        endpoint = await dispatch.find_tested(tx, scope.organization_id, endpoint_id)
        now = ctx.clock.now()
    if endpoint is None:
        raise WebhookEndpointNotFound
    limit = await ctx.webhook_test_limit.hit(scope.organization_id.encode())
    if not limit.is_allowed:
        raise _limited("This organisation has tested its endpoints too often. Try again in a minute.", limit.reset_s)
    if not await ctx.webhook_tests.take(scope.organization_id):
        raise _limited("Another test by this organisation is in progress. Try again when it has finished.", 1)
    event = WebhookEvent(
        organization_id=scope.organization_id,
        id=mint(ctx.entropy, EVENT_PREFIX),
        project_id=endpoint.project_id,
        type=TEST_TYPE,
        actor_type=scope.actor.type,
        actor_id=scope.actor.id,
        data="{}",
        created_at=now,
    )
    sealed = SealedSecrets(
        endpoint_id, endpoint.sealed_secret, endpoint.sealed_earlier_secret, endpoint.earlier_secret_until
    )
    try:
        async with ctx.webhook_tests.running:
            began_s = ctx.clock.monotonic_s()
            response = await send(ctx, endpoint.url, event, sealed)
            duration_ms = round((ctx.clock.monotonic_s() - began_s) * 1000)
    finally:
        ctx.webhook_tests.release(scope.organization_id)
    if isinstance(response, str):
        return WebhookTest(None, duration_ms, response)
    return WebhookTest(response, duration_ms, None if is_success(response) else BAD_STATUS)


def _limited(detail: str, after_s: int) -> RateLimited:
    return RateLimited(detail, headers={"retry-after": str(after_s)})
