"""An auditor's examination of a whole log, without its server: each fault is named."""

import pytest

from soundmark.core.domain.log.auditing import LogAudit, LogFault, require_tile
from soundmark.core.domain.log.checkpoint import Checkpoint
from soundmark.core.domain.log.entry import document_entry, read_entry
from soundmark.core.domain.log.tree import Edge, hash_leaf

ORIGIN = "log.example"
ENTRIES = [document_entry(b'"%d"' % number) for number in range(7)]


def checkpoint(size: int, *, origin: str = ORIGIN) -> Checkpoint:
    """Return the checkpoint of the first entries."""
    edge, _ = Edge(0, ()).grow([hash_leaf(entry) for entry in ENTRIES[:size]])
    return Checkpoint(origin, size, edge.root())


def examine(audit: LogAudit, *bundles: list[bytes]) -> None:
    for bundle in bundles:
        audit.add(bundle)
    audit.finish()


@pytest.mark.parametrize("known", [None, *range(8)])
def test_a_log_that_has_only_grown_passes(known: int | None) -> None:
    audit = LogAudit(checkpoint(7), None if known is None else checkpoint(known))
    read, tiles = audit.add(ENTRIES[:3])
    assert (read, audit.size) == ([read_entry(entry) for entry in ENTRIES[:3]], 3)
    assert tiles == {(0, 0): b"".join(hash_leaf(entry) for entry in ENTRIES[:3])}
    _, tiles = audit.add(ENTRIES[3:])
    assert tiles == {(0, 0): b"".join(hash_leaf(entry) for entry in ENTRIES)}
    audit.finish()


def test_another_log_is_refused() -> None:
    with pytest.raises(LogFault, match=r"^the log is log\.example, and was other\.example$"):
        LogAudit(checkpoint(7), checkpoint(7, origin="other.example"))


def test_a_log_that_shrank_is_refused() -> None:
    with pytest.raises(LogFault, match=r"^the log has 6 entries, and had 7$"):
        LogAudit(checkpoint(6), checkpoint(7))


@pytest.mark.parametrize("size", [6, 8])
def test_a_log_whose_entries_are_not_as_many_as_its_checkpoint_says_is_refused(size: int) -> None:
    with pytest.raises(LogFault, match=f"^the log has 7 entries, and its checkpoint says {size}$"):
        examine(LogAudit(Checkpoint(ORIGIN, size, bytes(32)), None), ENTRIES)


def test_entries_that_lead_to_another_root_are_refused() -> None:
    with pytest.raises(LogFault, match=r"^the entries do not lead to the root of the checkpoint$"):
        examine(LogAudit(checkpoint(7), None), [*ENTRIES[:6], document_entry(b'"x"')])


@pytest.mark.parametrize("known", [1, 2, 3, 4, 6, 7])
def test_a_log_that_is_not_the_one_that_was_known_is_refused(known: int) -> None:
    """Wherever a bundle ends, the older checkpoint is compared at its own size."""
    rewritten = LogAudit(checkpoint(7), Checkpoint(ORIGIN, known, bytes(32)))
    with pytest.raises(LogFault, match=f"^the first {known} entries are not those of the checkpoint that was known$"):
        examine(rewritten, ENTRIES[:3], ENTRIES[3:])


def test_an_empty_log_has_one_root() -> None:
    with pytest.raises(LogFault, match=r"^the first 0 entries are not those"):
        LogAudit(checkpoint(7), Checkpoint(ORIGIN, 0, bytes(32)))


def test_an_entry_without_a_known_form_is_named() -> None:
    audit = LogAudit(checkpoint(7), None)
    audit.add(ENTRIES[:2])
    with pytest.raises(LogFault, match=r"^entry 3 has no known form$"):
        audit.add([ENTRIES[2], b"{}"])


def test_an_entry_that_repeats_another_is_named() -> None:
    audit = LogAudit(checkpoint(7), None)
    audit.add(ENTRIES[:2])
    with pytest.raises(LogFault, match=r"^entry 3 repeats an earlier one$"):
        audit.add([ENTRIES[2], ENTRIES[0]])


def test_a_served_tile_is_refused_at_its_first_wrong_hash(subtests: pytest.Subtests) -> None:
    """Whoever serves it may answer with anything."""
    whole = bytes(256 * 32)
    faults = {
        b"": 0,
        whole[:-1]: 255,
        whole + b"x": 256,
        whole[:64] + b"x" + whole[65:]: 2,
    }
    require_tile((0, 7), whole, whole)
    for served, number in faults.items():
        with subtests.test(str(number)), pytest.raises(LogFault, match=f"^hash {number} of tile 7 of level 0 "):
            require_tile((0, 7), whole, served)
