"""Codes with their signed payloads, which another table stores under the token."""

from collections.abc import Sequence

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code, ListedCode
from soundmark.core.domain.codes.signed_facts import agree, read_facts
from soundmark.core.integrity import report_broken
from soundmark.core.problems import CodeNotFound
from soundmark.core.store.codes import broadcasts
from soundmark.kit.postgres.transaction import AnyTx


async def read_signed_codes(tx: AnyTx, found: Sequence[ListedCode]) -> list[Code]:
    """Return the Codes in their order; report and leave out any whose token is not stored.

    A second statement, not a join: `codes` is kept by organisation and `broadcasts` by token, and what was signed
    never changes.
    """
    if not found:
        return []
    signed = await broadcasts.find_many(tx, [code.broadcast_token for code in found])
    codes = []
    for code in found:
        broadcast = signed.get(code.broadcast_token)
        if broadcast is None:
            report_broken("tenant", xr_id=code.xr_id)
        else:
            codes.append(code.with_signature(broadcast.payload, broadcast.signature))
    return codes


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
