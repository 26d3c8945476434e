# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sets the queue length of the device under test, and reads it back at each rate of a sweep, with what became of the frames.

Everything that was set and read goes to --json and --parquet with its times, beside the measurement.
"""

import argparse
import sys
from pathlib import Path

from liteprobe.host.agent import AgentClient, Keys
from liteprobe.host.base.output import write_json
from liteprobe.host.report.agent_files import document, write_parquet


def sweep(client: AgentClient, lengths: list[int], loads: list[float]) -> list[tuple[int, float, int, int, int, float]]:
    """Return queue length as it was read back, load, frames forwarded and dropped, longest queue and mean wait (us)."""
    rows = []
    for length in lengths:
        client.set("queue_length", length)
        for load in loads:
            client.set("traffic_load", load)  # With a probe: probe.send([Stream(...)]).result()
            names = ("queue_length_now", "forwarded", "dropped", "queue_peak")
            now, forwarded, dropped, peak = (int(client.get(name)) for name in names)
            rows.append((now, load, forwarded, dropped, peak, float(client.get("mean_wait_us"))))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A queue length that is set and read back, against load.")
    parser.add_argument("--agent", default="tcp://127.0.0.1:5580")
    parser.add_argument("--keys", type=Path, help="keys of this end (NAME.key_secret); with --agent-key")
    parser.add_argument("--agent-key", type=Path, help="public key of the agent (NAME.key)")
    parser.add_argument("--lengths", default="4,16,64")
    parser.add_argument("--loads", default="0.5,0.8,0.95,1.05")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parquet", type=Path)
    args = parser.parse_args(arguments)
    lengths, loads = (
        [kind(item) for item in text.split(",")] for kind, text in ((int, args.lengths), (float, args.loads))
    )
    with AgentClient(args.agent, Keys.read(args.keys) if args.keys else None, args.agent_key) as client:
        print("queue   load   forwarded   dropped   peak   mean wait, us")
        for length, load, forwarded, dropped, peak, wait_us in sweep(client, lengths, loads):
            print(f"{length:5} {load:6.2f} {forwarded:11} {dropped:9} {peak:6} {wait_us:15.2f}")
        if args.json:
            write_json(args.json, document(client, sys.argv))
        if args.parquet:
            write_parquet(args.parquet, client.events)


if __name__ == "__main__":
    main()
