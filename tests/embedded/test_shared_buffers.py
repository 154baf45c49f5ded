"""How much memory PostgreSQL shares among its processes."""

import pytest

from soundmark.embedded.postgres import choose_shared_buffers_mib


@pytest.mark.parametrize(
    ("memory_mib", "expected_mib"), [(256, 128), (512, 128), (2048, 512), (4096, 1024), (24 * 1024, 1024)]
)
def test_it_is_a_quarter_of_the_machines_memory_within_bounds(memory_mib: int, expected_mib: int) -> None:
    assert choose_shared_buffers_mib(memory_mib * 2**20) == expected_mib
