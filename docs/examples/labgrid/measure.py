# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends a packet train by the probe of a place of labgrid, which was acquired: labgrid-client -p bench acquire."""

import sys
from pathlib import Path

from labgrid import Environment

from liteprobe.host import TrainProgram


def main(environment: str = str(Path(__file__).with_name("env.yaml"))) -> None:
    """Print what came of a train of a hundred frames."""
    target = Environment(environment).get_target("main")
    driver = target.get_driver("LiteProbeDriver")
    result = driver.get_probe().train(TrainProgram(1514, count=100))
    delays_ns = result.delays_ns
    print(f"{result.sent} sent, {result.received} received, delay {delays_ns.min()} to {delays_ns.max()} ns")
    target.deactivate(driver)


if __name__ == "__main__":
    main(*sys.argv[1:])
