"""Limits on large pieces of work."""

import asyncio

from soundmark.kit.slots import Slots, Turns


async def take_all(slots: Slots, *keys: str) -> list[bool]:
    return [await slots.take(key) for key in keys]


async def test_a_key_is_taken_once_until_it_is_released() -> None:
    slots = Slots(1)
    assert await take_all(slots, "one", "one", "another") == [True, False, True]
    slots.release("one")
    assert await take_all(slots, "one", "another") == [True, False]


async def test_as_many_run_as_there_are_slots() -> None:
    slots = Slots(2)
    async with slots.running, slots.running:
        assert slots.running.locked()
    assert not slots.running.locked()


async def test_turns_of_a_key_are_taken_in_order_and_those_of_another_key_at_once() -> None:
    turns, taken = Turns(), list[str]()

    async def work(name: str, key: str) -> None:
        async with turns.take(key):
            taken.append(name)

    async with turns.take("one"):
        waiting = [asyncio.create_task(work(name, "one")) for name in ("first", "gone", "second")]
        await work("other", "another")
        waiting[1].cancel()
        await asyncio.wait(waiting[1:2])
        assert taken == ["other"]
    await asyncio.gather(*waiting, return_exceptions=True)
    assert taken == ["other", "first", "second"]
