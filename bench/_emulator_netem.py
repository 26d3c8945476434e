# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``netem`` of the bench ``emulator``: the same configurations through netem of a user-mode kernel, and the reference.

Both get the same frames at the same times, twice. netem's times are those of a kernel that runs as a process of this machine: how
far they are off depends on what else it does, and the configuration without netem says how much of it isn't netem's. What is
ours is held to figures; what is netem's is written beside it, into build/bench/emulator-netem.md.
"""

from collections.abc import Iterator

from _figures import ROOT, Figure

from liteprobe.sim.bench.emulator.netem import netem as kernel
from liteprobe.sim.bench.emulator.netem.netem import CONFIGURATIONS, Configuration, Summary, Tells, ours, summary

FOLDER = ROOT / "build" / "bench"
HEAD = (
    "| configuration | of | delay: median error us | deviation us | greatest us | reordered | loss: correlation | burst | lost % "
    "| intervals: deviation us | same twice % |\n|---|---|" + "--:|" * 9
)


def line(one: Configuration, of: str, found: Summary) -> str:
    """Return a line of the table; what the configuration tells nothing of is "-"."""
    columns = [
        *((one.tells is Tells.DELAY, text) for text in delays(found)),
        *((one.tells is Tells.LOSS, text) for text in (f"{found.correlation:.4f}", f"{found.burst:.2f}")),
        (one.tells is not Tells.DELAY, f"{100 * found.lost:.3f}"),
        (one.tells is Tells.INTERVAL, f"{found.gap_us:.3f}"),
        (True, f"{100 * found.same:.2f}"),
    ]
    cells = [one.asked.netem or "nothing", of, *(text if is_known else "-" for is_known, text in columns)]
    return f"| {' | '.join(cells)} |"


def delays(found: Summary) -> tuple[str, ...]:
    """Return the columns of delays."""
    return f"{found.median_us:.1f}", f"{found.deviation_us:.1f}", f"{found.most_us:.1f}", str(found.reordered)


def netem(is_full: bool) -> Iterator[Figure]:
    """Errors of delays, correlation of losses, and what is the same again."""
    reason = kernel.lacking()
    if reason:
        print(f"netem skipped: {reason}")
        return
    twice = [one.asked for one in CONFIGURATIONS for _ in range(2)]
    passed = kernel.measure(twice)
    lines = [HEAD]
    of_ours: dict[str, Summary] = {}
    of_netem: dict[str, Summary] = {}
    for one, first, second in zip(CONFIGURATIONS, passed[::2], passed[1::2], strict=True):
        name = one.asked.name
        of_netem[name] = summary(one, first, second)
        # The same frames twice: those of netem's first run.
        of_ours[name] = summary(one, *(ours(one, first.sent_ns, seed=1) for _ in range(2)))
        lines += [line(one, "netem", of_netem[name]), line(one, "ours", of_ours[name])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "emulator-netem.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    yield Figure("netem_delay_error", of_ours["delay"].most_us, "us", 0)
    yield Figure("netem_jitter_reordered", of_ours["jitter"].reordered, "frames", 0)
    yield Figure("netem_same_twice", 100 * min(one.same for one in of_ours.values()), "%", 100, is_least=True)
    yield Figure("netem_gemodel_correlation_off", abs(of_ours["gemodel"].correlation - 0.89), "", 0.02)
    yield Figure("netem_gemodel_loss_off", 100 * abs(of_ours["gemodel"].lost - 1 / 11), "%", 1.5)
    yield Figure("netem_rate_interval", of_ours["rate"].gap_us, "us", 0)
