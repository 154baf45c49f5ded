"""What needs somebody's attention in an organisation, each with the page where it is solved."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from markupsafe import Markup
from soundmark_sdk.client.records import ApiKey, Invitation, Subscription

from soundmark.console.pages.organizations.endpoints import CheckedEndpoint
from soundmark.console.visit import Visit

_EXPIRES_SOON: Final = timedelta(days=14)
_EXPIRED_LATELY: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Concern:
    """A sentence about something that needs attention, and the path of the page where it is solved."""

    text: Markup
    path: str


def judge_endpoints(visit: Visit, endpoints: Iterable[CheckedEndpoint]) -> Iterator[Concern]:
    """Yield the webhook endpoints that were switched off because they failed, and those that fail now."""
    for each in endpoints:
        reason = each.endpoint.disabled_reason or ("fails" if each.failure else None)
        if reason is not None:
            key, name = f"webhooks.error.{each.failure}", f"organizations.concern.endpoint.{reason}"
            why = visit.say(key) if visit.language.knows(key) else each.failure or ""
            text = visit.language.isolate(name, url=each.endpoint.url, why=why)
            yield Concern(text, f"{visit.tenant_path}/webhooks/{each.endpoint.id}")


def judge_keys(visit: Visit, keys: Iterable[ApiKey]) -> Iterator[Concern]:
    """Yield the API keys that expire soon, or have expired lately."""
    now = visit.console.clock.now()
    for each in keys:
        if each.status == "active" and each.expires_at - now < _EXPIRES_SOON:
            message = "organizations.concern.key"
        elif each.status == "expired" and now - each.expires_at < _EXPIRED_LATELY:
            message = "organizations.concern.expired_key"
        else:
            continue
        span = visit.language.span(each.expires_at, now)
        text = visit.language.isolate(message, name=each.name or each.id, span=span)
        yield Concern(text, f"{visit.tenant_path}/projects/{each.project_id}/api-keys#{each.id}")


def judge_subscriptions(visit: Visit, subscriptions: Iterable[Subscription]) -> Iterator[Concern]:
    """Yield the subscriptions whose payment is overdue."""
    for each in subscriptions:
        if each.status == "past_due":
            text = visit.language.isolate("organizations.concern.past_due", plan=each.plan_name)
            yield Concern(text, f"{visit.tenant_path}/billing")


def judge_invitations(visit: Visit, invitations: Iterable[Invitation]) -> Iterator[Concern]:
    """Yield the invitations that nobody has accepted yet."""
    now = visit.console.clock.now()
    for each in invitations:
        if each.status == "pending":
            span = visit.language.span(each.expires_at, now)
            text = visit.language.isolate("organizations.concern.invitation", email=each.email, span=span)
            yield Concern(text, f"{visit.tenant_path}/members/invitations#{each.id}")
