"""The PostgreSQL releases that produce a warning."""

import pytest

from soundmark.kit.postgres.releases import KNOWN_GOOD, MAJOR_MAX, MAJOR_MIN, find_warning, is_supported, write_version


def test_every_major_has_a_known_good_minor() -> None:
    assert sorted(KNOWN_GOOD) == list(range(MAJOR_MIN, MAJOR_MAX + 1)) == [15, 16, 17, 18]
    assert all(version // 10_000 == major for major, version in KNOWN_GOOD.items())


def test_the_minor_before_the_known_good_one_produces_a_warning(subtests: pytest.Subtests) -> None:
    for version in KNOWN_GOOD.values():
        with subtests.test(write_version(version)):
            assert find_warning(version) is None
            assert find_warning(version + 1) is None
            warning = find_warning(version - 1)
            assert warning is not None
            assert warning.startswith(f"PostgreSQL {write_version(version - 1)} lacks the security fixes of ")
            assert f"{write_version(version)} (2026-11-12); upgrade it." in warning


@pytest.mark.parametrize(("version", "written"), [(140023, "14.23"), (190000, "19.0")])
def test_soundmark_does_not_run_on_another_major(version: int, written: str) -> None:
    assert not is_supported(version)
    assert find_warning(version) == (f"PostgreSQL {written} is not supported; Soundmark runs on PostgreSQL 15 to 18.")
