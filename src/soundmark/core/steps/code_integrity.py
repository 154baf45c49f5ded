"""The check of a stored Code against its signed payload."""

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code
from soundmark.core.domain.codes.signed_facts import agree, read_facts
from soundmark.core.integrity import report_broken
from soundmark.core.problems import CodeNotFound


async def verify_code(ctx: RequestContext, code: Code | None) -> Code:
    """Return the Code once its signature and every stored fact were checked.

    Raises: CodeNotFound for None, and for a Code that does not verify, which raises an alarm.
    """
    if code is None:
        raise CodeNotFound
    facts = read_facts(code.payload)
    if facts is not None and agree(facts, code):
        keyring = await ctx.live_keyring.keyring_with(facts.key_id)
        if keyring.verifies(facts.key_id, code.payload, code.signature):
            return code
    report_broken("tenant", xr_id=code.xr_id)
    raise CodeNotFound
