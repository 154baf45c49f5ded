"""The check of every captured log for secrets finds what it must find."""

from typing import Any

import pytest
from structlog import get_logger
from support.api.core_client import Api
from support.processes.secret_leaks import find_leaks, remember_secret
from support.tenancy.tenant import Tenant, make_tenant


def test_a_value_with_the_shape_of_a_secret_is_found(subtests: pytest.Subtests) -> None:
    for secret in [
        "xak_" + "a" * 43,
        "xin_" + "-" * 43,
        "xhm_" + "Z" * 43,
        "xop_" + "0" * 43,
        "brd_" + "b" * 16,
        "eyJhbGciOiJub25lIn0.e30x.c2ln",
    ]:
        with subtests.test(secret=secret):
            assert find_leaks(f'{{"event": "request", "x": "{secret}"}}') == {secret}


def test_a_remembered_secret_is_found() -> None:
    remember_secret("correct horse battery")
    assert find_leaks("smtp said: correct horse battery?") == {"correct horse battery"}
    assert find_leaks("key_id=sig_k8X3xlRS2yKbNqIoKjKY5s request_id=req_1 xr_0000000000000000000001") == set()


async def test_a_logged_secret_is_in_the_searched_text(api: Api, capsys: Any) -> None:
    """Otherwise the check would search where no log is written."""
    key = await (await make_tenant(api)).make_key()
    get_logger().info("leak", key=key["secret"])
    assert find_leaks("".join(capsys.readouterr())) == {key["secret"]}


async def test_the_acts_of_a_tenant_leave_no_secret_in_the_log(api: Api, capsys: Any) -> None:
    tenant: Tenant = await make_tenant(api)
    code = await tenant.make_code()
    await tenant.make_key()
    await api.resolve(code["broadcast_token"])
    log = "".join(capsys.readouterr())
    assert "route=/v1/codes" in log
    assert find_leaks(log) == set()
