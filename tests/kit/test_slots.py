"""A limit on large pieces of work."""

from soundmark.kit.slots import Slots


def test_a_key_is_taken_once_until_it_is_released() -> None:
    slots = Slots(1)
    assert [slots.take("one"), slots.take("one"), slots.take("another")] == [True, False, True]
    slots.release("one")
    assert [slots.take("one"), slots.take("another")] == [True, False]


async def test_as_many_run_as_there_are_slots() -> None:
    slots = Slots(2)
    async with slots.running, slots.running:
        assert slots.running.locked()
    assert not slots.running.locked()
