"""What a closure deletes, and what it counts."""

from datetime import UTC, datetime

import pytest

from soundmark.core.domain.tenancy.closure import CERTIFICATE_PREFIX, Closure, PurgedCounts


def make_closure(project_id: str | None) -> Closure:
    return Closure(
        organization_id="org_1",
        project_id=project_id,
        certificate_id="dct_1",
        operation_id="aud_1",
        phase="requested",
        requested_at=datetime(2026, 11, 23, tzinfo=UTC),
        deleted_codes=1,
        deleted_audit_entries=2,
        deleted_certificates=0,
        purged_integrations=3,
        purged_events=4,
        purged_integrity_days=5,
        purged_legacy_days=6,
        purged_spent_proofs=7,
    )


@pytest.mark.parametrize(
    ("project_id", "kind", "subject_id"), [(None, "organization", "org_1"), ("prj_1", "project", "prj_1")]
)
def test_a_closure_is_of_an_organisation_or_of_one_of_its_projects_alone(
    project_id: str | None, kind: str, subject_id: str
) -> None:
    subject = make_closure(project_id).subject
    assert (subject.type, subject.id, subject.organization_id) == (kind, subject_id, "org_1")


def test_what_audience_purged_is_told_apart() -> None:
    """The certificate names each number."""
    assert make_closure(None).purged == PurgedCounts(
        integrations=3, events=4, integrity_days=5, legacy_days=6, spent_proofs=7
    )


def test_a_certificate_is_known_by_its_prefix() -> None:
    assert CERTIFICATE_PREFIX == "dct_"
