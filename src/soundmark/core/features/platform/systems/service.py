"""The command that tests a system. Like changes of settings, tests are in the process log."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Final, TypeAlias

import structlog

from soundmark.core.access.operator import is_operator
from soundmark.core.context import Context, RequestContext
from soundmark.core.domain.platform.system_test import SystemName, SystemTest, SystemTestCode
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.features.platform.systems.mail import write_test_mail
from soundmark.core.providers.dolibarr.client import AccountingCallFailed
from soundmark.core.providers.dolibarr.server import find_accounting_server
from soundmark.core.providers.freescout.client import DeskCallFailed
from soundmark.core.providers.freescout.server import find_desk_server
from soundmark.core.providers.smtp import MailNotSent, MailRefused, send
from soundmark.core.providers.smtp_settings import find_smtp_server
from soundmark.core.providers.stripe.transport import CallFailed
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.settings.registry import AccountingSettings, SupportSettings

TIMEOUT_S: Final = 10.0
_ABSENT_REFERENCE: Final = "svc:test"  # Those of drafts go on with `acc_`.
# What the providers' clients call their failures, which are not the status of a response.
_OF_REASONS: Final[Mapping[str, SystemTestCode]] = {
    "address_refused": "address_refused",
    "deadline": "late",
    "not_configured": "not_configured",
    "unreachable": "unreachable",
    "unusable_key": "credential_unusable",
}
_OF_STATUSES: Final[Mapping[int, SystemTestCode]] = {
    HTTPStatus.UNAUTHORIZED: "key_refused",
    HTTPStatus.FORBIDDEN: "not_permitted",
    HTTPStatus.TOO_MANY_REQUESTS: "limited",
}
_FAULTS: Final = range(500, 600)
# RFC 4954, section 6, and what servers answer at MAIL if they want a login.
_OF_LOGINS: Final = frozenset({"530", "534", "535", "538"})
_log: Final = structlog.get_logger()

_Test: TypeAlias = Callable[[Context, User], Awaitable[SystemTestCode]]


async def test_system(ctx: RequestContext, user: User, system: SystemName) -> SystemTest:
    """Use a system once with the current settings, and return what it answered. Nothing is stored or repeated.

    Raises: RateLimited while the system is tested already, and after too many tests in a minute; DatabaseUnavailable.
    """
    limit = await ctx.system_test_limit.hit(system.encode())
    if not limit.is_allowed:
        raise _limited("This system was tested too often. Try again in a minute.", limit.reset_s)
    if not await ctx.system_tests.take(system):
        raise _limited("This system is being tested already. Try again when that has finished.", 1)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            code = await _TESTS[system](ctx, user)
    except TimeoutError:
        code = "late"
    except SealBroken:
        code = "credential_unreadable"
    finally:
        ctx.system_tests.release(system)
    _log.info("platform_system_tested", system=system, code=code, subject_id=user.subject_id)
    return SystemTest(system, code, ctx.clock.now())


async def _test_mail(ctx: Context, user: User) -> SystemTestCode:
    """Send a mail to the caller; to the sender if the caller has no address, as the operator of this machine."""
    server = await find_smtp_server(ctx.platform_settings)
    own = None if is_operator(user) else read_mailbox(user.email)
    mailbox = own or (None if server is None else read_mailbox(server.from_email))
    if server is None or mailbox is None:
        return "not_configured"
    mail = write_test_mail(mailbox, base_url=ctx.base_url, server=server, now=ctx.clock.now())
    deadline = timedelta(seconds=TIMEOUT_S)
    try:
        await send(server, mail, greeting=ctx.smtp_greeting, deadline=deadline, extra_ca_file=ctx.extra_ca_file)
    except MailRefused:
        return "recipient_refused"
    except MailNotSent as failed:
        return _judge_mail(failed.reason)
    return "sender_mail_accepted" if own is None else "mail_accepted"


async def _test_desk(ctx: Context, _: User) -> SystemTestCode:
    server = find_desk_server(await ctx.platform_settings.read(SupportSettings))
    if server is None:
        return "not_configured"
    try:
        has_mailbox = await ctx.desk.has_mailbox(server, timeout_s=TIMEOUT_S)
    except DeskCallFailed as failed:
        return _judge(failed.reason, failed.status)
    return "answered" if has_mailbox else "mailbox_unknown"


async def _test_accounting(ctx: Context, _: User) -> SystemTestCode:
    server = find_accounting_server(await ctx.platform_settings.read(AccountingSettings))
    if server is None:
        return "not_configured"
    try:
        await ctx.accounting.find_invoices(server, _ABSENT_REFERENCE)
    except AccountingCallFailed as failed:
        return _judge(failed.reason, failed.status)
    return "answered"


async def _test_card(ctx: Context, _: User) -> SystemTestCode:
    try:
        await ctx.card.check_access()
    except CallFailed as failed:
        return _judge(failed.reason, failed.status)
    return "answered"


_TESTS: Final[Mapping[SystemName, _Test]] = {
    "mail": _test_mail,
    "desk": _test_desk,
    "accounting": _test_accounting,
    "card": _test_card,
}


def _judge(reason: str, status: int | None) -> SystemTestCode:
    """Return what a failed call means. A status counts only if the system itself answered, not a page before it."""
    if status is None:
        return _OF_REASONS.get(reason, "unexpected")
    if status in _FAULTS:
        return "failing"
    return "unexpected" if reason in {"not_json", "malformed"} else _OF_STATUSES.get(status, "unexpected")


def _judge_mail(reason: str) -> SystemTestCode:
    """Return what it means that a mail was not sent: `reason` is the code of a reply, or the name of an error."""
    if reason in _OF_LOGINS:
        return "login_refused"
    if reason.isdecimal():
        return "failing" if reason.startswith("4") else "sender_refused"
    if reason.endswith("TimeoutError"):
        return "late"
    if reason == "SMTPException":  # Such as a server without STARTTLS or without a login.
        return "unexpected"
    return _OF_REASONS.get(reason, "unreachable")


def _limited(detail: str, after_s: int) -> RateLimited:
    return RateLimited(detail, headers={"retry-after": str(after_s)})
