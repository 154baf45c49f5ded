"""The table of actions and who may carry them out. It is data only; `docs/policy.md` is generated from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.tenancy.scope import KeyScope, Role

# A key of `POLICY`. An operation with another one fails as soon as it is declared.
Action: TypeAlias = str
CredentialKind = Literal["user", "api_key"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may carry out an action.

    People: members with one of `roles`; if `roles` is None, every verified person. `mfa` requires a second factor,
    `is_platform` a platform administrator. API keys: those with `key_scope`, every key if `any_key`, otherwise none.
    `note` states what the command itself checks in addition.
    """

    roles: frozenset[Role] | None
    mfa: bool = False
    key_scope: KeyScope | None = None
    is_platform: bool = False
    any_key: bool = False
    note: str | None = None

    @property
    def credentials(self) -> tuple[CredentialKind, ...]:
        """The kinds of credentials that can satisfy the rule."""
        return ("user", "api_key") if self.any_key or self.key_scope is not None else ("user",)


_EVERY_MEMBER: Final[frozenset[Role]] = frozenset({"owner", "admin", "member", "billing"})
_READERS: Final[frozenset[Role]] = frozenset({"owner", "admin", "member"})
_OWNERS: Final[frozenset[Role]] = frozenset({"owner"})
_ADMINS: Final[frozenset[Role]] = frozenset({"owner", "admin"})
_BUYERS: Final[frozenset[Role]] = frozenset({"owner", "admin", "billing"})

# Source: contract, section 2.
POLICY: Final[Mapping[Action, Rule]] = {
    "caller.read": Rule(roles=None, any_key=True),
    "organization.create": Rule(roles=None, mfa=True),
    "organization.list": Rule(roles=None),
    "organization.update": Rule(roles=_ADMINS, mfa=True),
    "organization.preflight": Rule(roles=_OWNERS),
    "organization.delete": Rule(roles=_OWNERS, mfa=True),
    "project.create": Rule(roles=_ADMINS),
    "project.list": Rule(roles=_EVERY_MEMBER),
    "project.update": Rule(roles=_ADMINS, mfa=True),
    "project.read_hosts": Rule(roles=_EVERY_MEMBER, key_scope="codes:read"),
    "project.change_hosts": Rule(roles=_ADMINS, mfa=True),
    "project.preflight": Rule(roles=_ADMINS),
    "project.delete": Rule(roles=_ADMINS, mfa=True),
    "organization.export": Rule(roles=_OWNERS),
    "project.export": Rule(roles=_ADMINS, mfa=True),
    "api_key.create": Rule(roles=_ADMINS),
    "api_key.list": Rule(roles=_ADMINS),
    "api_key.rename": Rule(roles=_ADMINS),
    "api_key.revoke": Rule(roles=_ADMINS),
    "api_key.rotate": Rule(roles=_ADMINS),
    "member.list": Rule(roles=_ADMINS),
    "member.update": Rule(roles=_ADMINS, note="only an owner can grant, change or withdraw the roles owner and admin"),
    "member.remove": Rule(
        roles=_EVERY_MEMBER,
        note="members can remove themselves; owners and administrators can remove others, but only an owner can "
        "remove an owner or administrator",
    ),
    # The commands check the second factor of a new administrator and that an owner invited them.
    "invitation.accept": Rule(roles=None, note="joining as an administrator requires a second factor"),
    "invitation.create": Rule(roles=_ADMINS, note="only an owner can invite an administrator"),
    "invitation.list": Rule(roles=_ADMINS),
    "invitation.revoke": Rule(roles=_ADMINS),
    "audit_log.read": Rule(roles=_ADMINS),
    "audit_log.verify": Rule(roles=_ADMINS),
    "campaign.create": Rule(roles=_ADMINS),
    "campaign.list": Rule(roles=_EVERY_MEMBER, key_scope="codes:read"),
    "campaign.update": Rule(roles=_ADMINS, mfa=True),
    "campaign.archive": Rule(roles=_ADMINS),
    "campaign.stop": Rule(roles=_ADMINS, key_scope="codes:write"),
    "campaign.summarise": Rule(roles=_READERS, key_scope="codes:read"),
    "code.issue": Rule(roles=_ADMINS, key_scope="codes:write"),
    "code.recover": Rule(roles=_ADMINS, key_scope="codes:write"),
    "code.list": Rule(roles=_READERS, key_scope="codes:read"),
    "code.read": Rule(roles=_READERS, key_scope="codes:read"),
    "code.revoke": Rule(roles=_ADMINS, key_scope="codes:write"),
    "code.revoke_batch": Rule(roles=_ADMINS, mfa=True, key_scope="codes:write"),
    "decode_certificate.issue": Rule(roles=_READERS, key_scope="codes:read"),
    "offline_pack.make": Rule(roles=_ADMINS, key_scope="codes:read"),
    "code.render": Rule(roles=_READERS, key_scope="codes:read"),
    "audience.create": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.list": Rule(roles=_READERS, key_scope="audience:read"),
    "audience.rename": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.revoke": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.rotate_secret": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.change_retention": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.replace_core_key": Rule(roles=_ADMINS, key_scope="audience:write"),
    "audience.report": Rule(roles=_READERS, key_scope="audience:read"),
    "audience.legacy_report": Rule(roles=_READERS, key_scope="audience:read"),
    "usage.read": Rule(roles=_EVERY_MEMBER),
    "checkout.create": Rule(roles=_BUYERS),
    "checkout.cancel": Rule(roles=_BUYERS),
    "checkout.read": Rule(roles=_BUYERS),
    "portal.open": Rule(roles=_BUYERS),
    "platform.read": Rule(roles=None, mfa=True, is_platform=True),
    "platform.change": Rule(roles=None, mfa=True, is_platform=True),
    "billing.administer": Rule(roles=None, mfa=True, is_platform=True),
    "offer.list": Rule(roles=None),
    "subscription.list": Rule(roles=_BUYERS),
    "ticket.create": Rule(roles=_EVERY_MEMBER),
    "ticket.list": Rule(roles=_EVERY_MEMBER),
    "ticket.read": Rule(roles=_EVERY_MEMBER),
    "ticket.reply": Rule(roles=_EVERY_MEMBER),
    "webhook_endpoint.create": Rule(roles=_ADMINS),
    "webhook_endpoint.read": Rule(roles=_ADMINS),
    "webhook_endpoint.change": Rule(roles=_ADMINS),
    "release.read": Rule(roles=None, mfa=True, is_platform=True),
}
