"""The outline of a body that holds more values than any request needs."""

from typing import Any

import pytest

from soundmark.kit.http.requests.json_outline import read_outline
from soundmark.kit.http.requests.strict_json import MalformedJson, Unrepresentable

NAMES = ["organization_id", "project_id", "intent"]
MANY = b"[" + b"1," * 200 + b"1]"


def outline(text: bytes) -> dict[str, Any]:
    return read_outline(text, NAMES, structure_max=100)


def test_known_members_are_read_and_oversized_ones_are_marked() -> None:
    found = outline(b'{"intent":%s,"project_id":"prj_1","more":%s,"organization_id":"org_\\u0031"}' % (MANY, MANY))
    assert found.keys() == set(NAMES)
    assert (found["organization_id"], found["project_id"]) == ("org_1", "prj_1")
    assert isinstance(found["intent"], Unrepresentable)


def test_unknown_members_are_skipped() -> None:
    unknown = b",".join(b'"a%d":1' % number for number in range(1000))
    assert outline(b'{%s,"project_id":"prj_1",%s}' % (unknown, unknown)) == {"project_id": "prj_1"}


@pytest.mark.parametrize(
    "text", [MANY, b'"' + b"," * 200 + b'"', b"[" * 5000 + b"]" * 5000], ids=["list", "text", "deep"]
)
def test_a_body_that_is_not_an_object_has_no_members(text: bytes) -> None:
    assert outline(text) == {}


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_of_a_text_that_nests_too_deeply_the_members_in_front_are_known(opening: bytes, closing: bytes) -> None:
    deep = opening * 5000 + b"1" + closing * 5000
    found = read_outline(b'{"organization_id":"org_1","intent":%s,"project_id":"p"}' % deep, NAMES, structure_max=600)
    assert found["organization_id"] == "org_1"
    assert "project_id" not in found
    inner = found["intent"]
    while isinstance(inner, list | dict):
        (inner,) = inner.values() if isinstance(inner, dict) else inner
    assert isinstance(inner, Unrepresentable)


def test_of_a_text_with_too_much_in_front_of_its_depth_nothing_is_known() -> None:
    assert (
        outline(
            b'{"organization_id":"org_1","more":[%s],"intent":%s}' % (b'"",' * 500 + b"1", b"[" * 5000 + b"]" * 5000)
        )
        == {}
    )


@pytest.mark.parametrize("member", [b'{"a":1,"a":2}', b'"\\ud800"'])
def test_a_member_that_is_read_is_validated_as_usual(member: bytes) -> None:
    with pytest.raises(MalformedJson):
        outline(b'{"more":%s,"project_id":%s}' % (MANY, member))
