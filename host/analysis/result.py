# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what the results of all kinds of runs have in common: counts, delays, tables for others to work with, a plot.

A result has parts: its streams, ports or classes, or itself alone. Each kind of result says which, in which columns its
figures stand, and which delays are known one by one; all else is here.
"""

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.columns import Columns, shown
from liteprobe.host.analysis.expect import COUNTS, DELAYS, Judgement, Value, Values, judge
from liteprobe.host.base import extras
from liteprobe.host.base.errors import DataError
from liteprobe.host.base.text import safe
from liteprobe.host.base.units import TIMES, fitting
from liteprobe.host.measure.percentiles import Bounds, Cells, Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

DELAYS_MOST = 20_000_000  # Of a histogram, as an array.
POINTS = 1001  # Of a line of a plot.


class DelayFigure:
    """A figure of the delays of a part, by the name that it has there, as a number with ``.bounds`` (ns); None: not known."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, kind: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, part: None, kind: type) -> "DelayFigure": ...
    @overload
    def __get__(self, part: "PartFigures", kind: type) -> Measured | None: ...
    def __get__(self, part: "PartFigures | None", kind: type) -> "DelayFigure | Measured | None":
        return self if part is None else Measured.of(part.delay_figures.get(self.name))


class PartFigures:
    """Gives a part of a result its delays, each a number with ``.bounds`` (ns); None where one isn't known.

    >>> from liteprobe.host.measure.percentiles import Bounds
    >>> class Voice(PartFigures):
    ...     delay_figures = {"mean": 3576.0, "p99": Bounds(4096, 4351)}
    >>> Voice().p99, Voice().p99.bounds, Voice().p50
    (4223.5, Bounds(least=4096, most=4351), None)
    """

    @property
    def delay_figures(self) -> Mapping[str, Any]:
        """Figures of its delays by their names (ns): numbers, bounds, or None."""
        return {}

    least = DelayFigure("The least delay (ns).")
    mean = DelayFigure("The mean delay (ns).")
    std = DelayFigure("The standard deviation of the sample of delays (ns).")
    p50 = DelayFigure("The median delay (ns).")
    p99 = DelayFigure("The delay that 99 % of all don't exceed (ns).")
    p99_9 = DelayFigure("The delay that 99.9 % of all don't exceed (ns).")
    most = DelayFigure("The greatest delay (ns).")


class Result(ABC):
    """Holds what came of a run; see the module.

    >>> from liteprobe.host import CaptureResult
    >>> result = CaptureResult({"frames": 3, "octets": 192, "dropped": {"0": 1}})
    >>> result
    <CaptureResult: 3 received, 1 lost, incomplete>
    >>> result.loss_ratio, result.to_dict()["octets"]
    (0.25, 192)
    >>> result.expect("received > 2", "loss < 1%")
    Traceback (most recent call last):
    liteprobe.host.base.errors.ExpectationError: loss < 1%: not held: loss_ratio is 0.25
    """

    #: Its figures, as the report's table has them; keys are the names of conditions.
    COLUMNS: ClassVar[Columns]

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """Parts that its figures are of, by name."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, which ``json.dumps`` takes as it is."""

    @property
    def delays_by_part(self) -> Mapping[str, NDArray[np.int64]]:
        """Delays of frames by part (ns), as far as they are known one by one or by bins."""
        return {}

    @property
    def records_by_part(self) -> Mapping[str, NDArray[np.int64]]:
        """Delays that are known one by one, by part (ns), in the order in which the frames came."""
        return self.delays_by_part

    @property
    def cells_by_part(self) -> Mapping[str, Cells]:
        """Delays by part, each in a bin (ns): what histograms are made of, as far as delays are known and not modulo alone."""
        return {name: Cells.of_values(delays) for name, delays in self.delays_by_part.items()}

    def error_ns(self, part: Any) -> float:
        """Return the bound of the error of one delay of a part, beside what its figures have of their own (ns)."""
        del part
        known_ns: float | None = getattr(self, "uncertainty_ns", 0.0)
        return math.inf if known_ns is None else known_ns

    def value(self, key: str, part: Any) -> Any:
        """Return a figure of a part as its column has it."""
        return self.COLUMNS[key].value(part)

    # Counts ---------------------------------------------------------------------------------------

    @cached_property
    def sent(self) -> int | None:
        """Frames that were sent; None: not known."""
        return self.count("sent")

    @property
    def received(self) -> int | None:
        """Frames that came; None: not measured."""
        return self.count("received")

    @property
    def lost(self) -> int | None:
        """Frames that were sent and did not come; None: not measured."""
        return self.count("lost")

    @property
    def loss_ratio(self) -> float | None:
        """Lost over sent; None where it isn't known."""
        sent, received, lost = self.sent, self.received, self.lost
        return ratio(lost, sent if sent is not None or received is None or lost is None else received + lost)

    def count(self, name: str) -> int | None:
        """Return the sum of a count over all parts; None where one of them doesn't know it."""
        values: list[Any] = [self.value(name, part) if name in self.COLUMNS else None for part in self.parts.values()]
        return None if None in values else sum(values)

    # Figures --------------------------------------------------------------------------------------

    @property
    def figures(self) -> dict[str, dict[str, Value]]:
        """All figures by part and name, each with its bounds: those of delays with the error of the clock, too."""
        return {
            name: widened({key: _value(self.value(key, part)) for key in self.COLUMNS}, self.error_ns(part))
            for name, part in self.parts.items()
        }

    @property
    def judged_figures(self) -> Mapping[str, Values]:
        """Figures by part that conditions are about: a part need not have each of them."""
        return self.figures

    @property
    def delays_ns(self) -> NDArray[np.int64]:
        """Delays of the frames that came, shape (frames,), part after part (ns).

        A delay that is known by the bins of a histogram is the middle of its bin.
        """
        return np.concatenate([np.empty(0, np.int64), *self.delays_by_part.values()])

    def table(self) -> dict[str, Any]:
        """Return a table by its columns: a row for each part, and where bounds are known, ``..._low`` and ``..._high``.

        >>> from liteprobe.host import CaptureResult
        >>> CaptureResult({"frames": 3, "octets": 192, "dropped": {}}).table()
        {'name': ['capture'], 'received': [3], 'lost': [0], 'octets': [192]}
        """
        rows = self.figures
        made: dict[str, Any] = {"name": list(rows)}
        for key in self.COLUMNS:
            if any(key not in row for row in rows.values()):  # Words, not numbers.
                continue
            values = [row[key] for row in rows.values()]
            made[key] = _column(values)
            bounds = [value.bounds if isinstance(value, Measured) else None for value in values]
            if any(one and one.least != one.most for one in bounds):
                made[f"{key}_low"] = _column([one and one.least for one in bounds])
                made[f"{key}_high"] = _column([one and one.most for one in bounds])
        return made

    def to_pandas(self) -> "PandasFrame":
        """Return `table` as a data frame of pandas; ProbeError where it isn't installed."""
        made: PandasFrame = _optional("pandas").DataFrame(self.table())
        return made

    def to_polars(self) -> "PolarsFrame":
        """Return `table` as a data frame of Polars; ProbeError where it isn't installed."""
        made: PolarsFrame = _optional("polars").DataFrame(self.table())
        return made

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw which part of the frames came within which delay, into ``axes`` or a new figure, and return its axes.

        Raises DataError where no delays were measured, MissingExtraError where matplotlib isn't installed.
        """
        found = {name: np.sort(delays) for name, delays in self.delays_by_part.items() if len(delays)}
        if not found:
            raise DataError(f"this {type(self).__name__} has no delays to plot: measure some, or plot its `table()`")
        with extras.named():
            from matplotlib import pyplot
        axes = pyplot.subplots()[1] if axes is None else axes
        unit, scale = fitting(max(int(delays[-1]) for delays in found.values()), TIMES)
        for name, delays in found.items():
            at = np.unique(np.linspace(0, len(delays) - 1, min(len(delays), POINTS)).astype(np.int64))
            axes.step(delays[at] / float(scale), 100 * (at + 1) / len(delays), where="post", label=name)
        axes.set(xlabel=f"delay, {unit}", ylabel="frames that came within it, %", ylim=(0, 103))
        axes.legend()
        return axes

    # A verdict ------------------------------------------------------------------------------------

    def verdict(self, *conditions: str, lenient: bool = False) -> Judgement:
        """Judge conditions like ``"lost == 0"``, ``"p99 < 10us"``; ``lenient``: a limit that an error bar crosses counts as held.

        Raises UsageError where one can't be read.

        >>> from liteprobe.host import CaptureResult
        >>> CaptureResult({"frames": 3, "octets": 192, "dropped": {}}).verdict("lost == 0", "octets > 1k").checks[1].line
        'octets > 1k: not held: octets is 192'
        """
        whole: dict[str, Value] = {name: self.count(name) for name in COUNTS if name in self.COLUMNS}
        return judge(conditions, self.judged_figures, whole | {"loss_ratio": Measured.of(self.loss_ratio)}, lenient)

    def expect(self, *conditions: str, lenient: bool = False) -> None:
        """Raise ExpectationError, an AssertionError, unless all conditions hold; UndecidedError where one is unknown."""
        self.verdict(*conditions, lenient=lenient).require()

    # What is seen ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        counted = {"sent": self.sent, "received": self.received, "lost": self.lost}
        said = [f"{value:,} {name}" for name, value in counted.items() if value is not None]
        p99s = [(value, name) for name, row in self.figures.items() if (value := row.get("p99")) is not None]
        if p99s:
            worst, name = max(p99s)
            unit, scale = fitting(worst, TIMES)
            said.append(f"p99 {worst / float(scale):,.6g} {unit}{f' ({name})' if len(self.parts) > 1 else ''}")
        whole = getattr(self, "is_complete", True) and getattr(self, "complete", True)
        return safe(f"<{type(self).__name__}: {', '.join([*said, *['incomplete'] * (not whole)])}>")

    def _repr_html_(self) -> str:
        columns = [one for one in self.COLUMNS.values() if one.title]
        rows = [
            [name, *(shown(self.value(one.key, part), one.digits, one.scale) for one in columns)]
            for name, part in self.parts.items()
        ]
        heads = "".join(f"<th>{_escaped(title)}</th>" for title in ["", *(one.title for one in columns)])
        body = "".join(f"<tr>{''.join(f'<td>{_escaped(text)}</td>' for text in row)}</tr>" for row in rows)
        notes = "".join(f"<p>{_escaped(note)}</p>" for note in getattr(self, "notes", ()))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}"


def ratio(part: int | None, whole: int | None) -> float | None:
    """Return a part of a whole; None where either isn't known, or there is nothing.

    >>> ratio(1, 4), ratio(None, 4), ratio(0, 0)
    (0.25, None, None)
    """
    return None if part is None or not whole else part / whole


def widened(values: Values, error_ns: float) -> dict[str, Value]:
    """Return figures of which those of delays have wider bounds, by the error of one delay (ns).

    >>> widened({"lost": 2, "p99": Measured.of(100)}, 8.0)["p99"].bounds
    Bounds(least=92.0, most=108.0)
    """

    def wide(key: str, value: Value) -> Value:
        if value is None or key not in DELAYS or not error_ns:
            return value
        bounds = value.bounds if isinstance(value, Measured) else Bounds(value, value)
        least = bounds.least - error_ns
        return Measured(value, Bounds(max(least, 0.0) if key == "std" else least, bounds.most + error_ns))

    return {key: wide(key, value) for key, value in values.items()}


def of_cells(cells: Cells) -> NDArray[np.int64]:
    """Return values that are known by bins, each the middle of its own; raises DataError where they are too many.

    >>> of_cells(Cells.of([(0, 8, 2), (16, 16, 1)])).tolist()
    [4, 4, 16]
    """
    if cells.total > DELAYS_MOST:
        raise DataError(
            f"{cells.total:,} delays don't fit into an array of {DELAYS_MOST:,}: take the bins (`latency.cells`), or the figures"
        )
    return np.repeat(cells.lows + (cells.highs - cells.lows) // 2, cells.counts)


# # #


def _value(value: Any) -> Value:
    return value if isinstance(value, int) and not isinstance(value, bool) else Measured.of(value)


def _column(values: Sequence[Any]) -> list[int | None] | list[float | None]:
    """Return numbers of one kind, as Polars asks for: whole ones where all are; None is not known."""
    if all(isinstance(value, int) for value in values if value is not None):
        return list(values)
    return [None if value is None else float(value) for value in values]


def _optional(name: str) -> ModuleType:
    with extras.optional(name, "a data frame needs"):
        import importlib

        return importlib.import_module(name)


def _escaped(text: str) -> str:
    return html.escape(safe(text)).replace("\n", " ")
