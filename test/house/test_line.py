# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host takes rate and tick from the probe: what says 8 ns or 1 Gb/s by itself is known, and of parts that 10 Gb/s lacks."""

import re
from pathlib import Path

HOST = Path(__file__).resolve().parents[2] / "host"
SAID = re.compile(
    r"\bTICK_NS\b|\bTICK_PS\b|\bLINE_RATE_BPS\b|\bTICKS_PER_SECOND\b|\b8 ns\b|\b8\.0 \*|\b8 \* INCREMENT_ONE\b"
)

#: Files that do, by what they are of, and how many of their lines: fewer is progress, and to be noted here.
KNOWN = {
    "streams, and the suites, plans and servers of them": """
        cli/values.py 1  fleet/experiment.py 3
        fleet/halves.py 2  fleet/plan.py 2  fleet/streams.py 2  fleet/suite_runs.py 2  measure/short_stamps.py 3
        otg/flows.py 9  otg/metrics.py 3
        suites/rfc2544.py 5  suites/rfc2889.py 3  suites/soak.py 3  suites/trials.py 10
        suites/y1564.py 3  traffic/intervals.py 1
    """,
    "monitor, capture and replay": """
        capture/live.py 2  cli/commands/monitor.py 5  packets/files.py 2  run/replay.py 2
        traffic/trace/trace.py 5
    """,
    "the emulated network, which stays at 1 Gb/s, and what else is of 1 Gb/s alone": """
        cli/commands/demo.py 4  device/link/sim_stations.py 2  run/emulate.py 2  traffic/network/netem.py 4
        traffic/network/network.py 2  traffic/network/store.py 11  traffic/network/words.py 4
    """,
    "discipline of the clock, and delays between two probes": """
        analysis/line_clock.py 12  clock/clock.py 4  clock/log.py 7  device/discover.py 2
        report/owd_page.py 4  serve/discipline.py 2  suites/bring_up.py 4  suites/owd.py 6
    """,
    "both: the line itself, what is taken where nobody says it, and a margin that is enough for both (a tick of 8 ns)": """
        analysis/capacity.py 13  analysis/theory.py 5  base/line.py 3  device/link/sim.py 1
    """,
}


def test_what_says_its_rate_by_itself_is_known_and_gets_less() -> None:
    found = {}
    for path in sorted(HOST.rglob("*.py")):
        if count := sum(bool(SAID.search(line)) for line in path.read_text(encoding="utf-8").splitlines()):
            found[str(path.relative_to(HOST))] = count
    words = [text.split() for text in KNOWN.values()]
    assert found == {name: int(count) for each in words for name, count in zip(each[::2], each[1::2], strict=True)}
