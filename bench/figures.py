"""A measured figure with its target, and the pages that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.machine import described

RESULTS: Final = Path(__file__).with_name("RESULTS.md")  # Every row, and the story.
MEASURED: Final = Path(__file__).with_name("MEASURED.md")  # Each part by itself.


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


# What limits the rows that miss their target, by the beginning of their names.
_LIMITS: Final = {
    "Resolve with envelope, 100,000 Codes": "the Ed25519 signature takes a third of a resolution",
    "Resolve, 1,000,000 Codes": "a row takes 1.6 kB, and a million do not fit into a gibibyte of shared buffers",
    "Resolve, 10,000,000 Codes": "16 GB of rows: most are copied from the system's cache into a gibibyte of buffers",
    "Resolve: processor": "the Ed25519 signature (26 to 39 µs here, 20 on another machine) and HTTP",
    "Core's resident memory": "code; 32 MiB are the cache",
    "List of 50 Codes: proc": "a slow machine: 45 to 66 constant answers, where 1.2 ms were 70 on the profiled one",
    "List of 50 Codes with an access token, keys cached: cost with": "its look-up: one more query for each request",
    "Single Codes of 16 organisations, two": "PostgreSQL: the bare statements alone are under half of pgbench",
    "Single Codes of 16 organisations; their": "Core's processor time for a Code, beside PostgreSQL's",
    "Single Codes of one organisation": "a fast disk: pgbench's one client waits for little else",
    "Batches of 100 with the log: proc": "two hashes and a row of the log's queue for each Code",
    "Stopping a campaign": "a slow machine, and a commitment to each Code, nearly half of the time",
    "Another organisation's issuance": "the stop uses one of the two cores",
    "Events, verified": "HTTP and libsodium's signature, half and a quarter of the time",
    "`soundmark up` ready again: processor": "imports: routes and models, pages of the console; a slow machine",
    "An idle `up`: processor": "a slow machine: see Starting",
}
_ALL: Final = ("<!-- every row (written by python -m bench) -->", "<!-- every row ends -->")


def summarize(results: str, measured: str) -> str:
    """Return the first page with every row of the second one in its table, those that miss first."""
    lines = measured.splitlines()
    rows = [tuple(cell.strip() for cell in line[2:-2].split(" | ")) for line in lines if line[:2] == "| "]
    rows = [row for row in rows if len(row) == len(HEADINGS) and row[-1] in {"yes", "NO"}]
    lines = ["| Figure | Reference | Value | Wanted | Reached | Limit |", "| --- | --- | --- | --- | --- | --- |"]
    named, name = [], ""
    for figure, _, *cells in rows:
        name = name if figure.startswith("The same") else figure
        named.append((figure.replace("The same", name), *cells))
    for row in sorted(named, key=lambda each: each[-1]):
        described_by = f"{row[0]}; {row[1]}"
        limits = [limit for begin, limit in _LIMITS.items() if row[-1] == "NO" and described_by.startswith(begin)]
        lines.append(f"| {' | '.join((*row, *(limits or [''])))} |")
    before, _, rest = results.partition(_ALL[0])
    _, _, after = rest.partition(_ALL[1])
    table = "\n".join(lines)
    return f"{before}{_ALL[0]}\n{table}\n{_ALL[1]}{after}"


def keep(part: str, figures: Sequence[Figure]) -> None:
    """Put one part's table and the machine's name into the pages; other parts and handwritten text stay."""
    begin, end = f"<!-- measured: {part} (written by python -m bench) -->", f"<!-- measured: {part} ends -->"
    before, _, rest = MEASURED.read_text().partition(begin)
    assert rest, f"{MEASURED.name} has a place for {part}"
    _, _, after = rest.partition(end)
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(figure.cells() for figure in figures)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    MEASURED.write_text(f"{before}{begin}\n{described()}\n\n{table}\n{end}{after}")
    RESULTS.write_text(summarize(RESULTS.read_text(), MEASURED.read_text()))
