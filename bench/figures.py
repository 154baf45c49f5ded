"""A measured figure with its target, and the page that holds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.machine import described

PAGE: Final = Path(__file__).parent / "RESULTS.md"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: a measurement, in words and as the number that is compared with `target`."""

    name: str
    measured: str
    reference: str
    value: float
    bound: Literal["at least", "at most"]
    target: float
    unit: str = ""

    @property
    def is_reached(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    def cells(self) -> tuple[str, ...]:
        """Return the texts of its row."""
        return (
            self.name,
            self.measured,
            self.reference,
            f"{self.value:.2f}{self.unit}",
            f"{self.bound} {self.target:g}{self.unit}",
            "yes" if self.is_reached else "NO",
        )


HEADINGS: Final = ("Figure", "Measured", "Reference in the same run", "Value", "Wanted", "Reached")


def ratio_of_rounds(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Return the median of the rounds' own ratios: a slow moment of the machine slows both parts of a round."""
    return median(one / other for one, other in zip(numerators, denominators, strict=True))


def rates(
    name: str, measured: Sequence[float], reference_name: str, references: Sequence[float], target: float
) -> Figure:
    """Describe the rates per second, in rounds beside those of a reference."""
    return Figure(
        name,
        f"{median(measured):,.0f}/s",
        f"{reference_name}: {median(references):,.0f}/s",
        ratio_of_rounds(measured, references),
        "at least",
        target,
    )


def show(figures: Sequence[Figure]) -> None:
    """Print the table."""
    table = Table(*HEADINGS)
    for figure in figures:
        table.add_row(*map(escape, figure.cells()))
    Console(width=160).print(table)


def keep(part: str, figures: Sequence[Figure]) -> None:
    """Put one part's table and the machine's name into `RESULTS.md`; other parts and handwritten text stay."""
    begin, end = f"<!-- measured: {part} (written by python -m bench) -->", f"<!-- measured: {part} ends -->"
    before, _, rest = PAGE.read_text().partition(begin)
    assert rest, f"{PAGE.name} has a place for {part}"
    _, _, after = rest.partition(end)
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(figure.cells() for figure in figures)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    PAGE.write_text(f"{before}{begin}\n{described()}\n\n{table}\n{end}{after}")
