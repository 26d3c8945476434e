# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""``capture --host-filter`` of a simulated probe: libpcap over what its ports saw, and what can't be joined with it."""

import json
import subprocess
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system import signals
from liteprobe.sim.drivers.system.monitoring import PORTS, bursts

SEED = 20261125
LEAST = 300  # Octets that UDP says it has: no unified header knows them.
SNAP = 64
FILTER = f"udp[4:2] >= {LEAST}"


def command(build: Path, folder: Path, *options: str) -> list[str]:
    played = ",".join(str(bursts(folder / f"{port}.pcap", SEED + port)) for port in range(PORTS))
    url = f"sim://loopback?preset=monitor&build={build}&play={played}&pcap={folder / 'pins'}"
    asked = ["capture", "--probe", url, "-w", str(folder / "c.pcapng"), "--json", str(folder / "c.json")]
    asked += ["--filter", FILTER, "--host-filter"]
    return [str(signals.PROGRAM), *asked, "--snap", str(SNAP), "--duration", "3ms", *options]


def captured(path: Path) -> list[tuple[int, bytes, str]]:
    with RawPcapNgReader(str(path)) as reader:
        return [(meta.tshigh << 32 | meta.tslow, octets, meta.ifname.decode()) for octets, meta in reader]


@pytest.mark.parametrize("trigger", [[], ["--trigger", "greater 1000", "--host-trigger", "--before", "0us"]])
def test_libpcap_filters_what_the_ports_saw(monitor_build: Path, tmp_path: Path, trigger: list[str]) -> None:
    done = subprocess.run(command(monitor_build, tmp_path, *trigger), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ("other than in tcpdump, the filter" in done.stderr, "the trigger" in done.stderr) == (False, False)
    found, counts = captured(tmp_path / "c.pcapng"), json.loads((tmp_path / "c.json").read_text())
    pins = [truth.read_pcap(tmp_path / f"pins.port{port}.in.pcap") for port in range(PORTS)]
    came = sorted(pair for stamps, contents in pins for pair in zip(stamps.tolist(), contents, strict=True))
    assert [stamp for stamp, _, _ in found] == sorted(stamp for stamp, _, _ in found)
    for port, (stamps, contents) in enumerate(pins):
        matching = [
            (stamp, octets[:SNAP])
            for stamp, octets in zip(stamps.tolist(), contents, strict=True)
            if int.from_bytes(octets[38:40]) >= LEAST
        ]
        mine = [(stamp, octets) for stamp, octets, name in found if name == f"port{port}"]
        # It begins and ends somewhere among the frames that go on and on; ports are let go one after the other.
        first = next(number for number, (stamp, _) in enumerate(matching) if stamp >= mine[0][0])
        assert mine == matching[first : first + len(mine)]
    assert len(found) > 100 and not any(counts["dropped"].values())
    if trigger:  # --before 0us: what fires is the first.
        assert max(len(octets) for stamp, octets in came if stamp == found[0][0]) >= 1000
    else:
        assert counts["frames"] + counts["filtered"] == counts["records"] > 2 * len(found)


def test_a_trigger_in_the_probe_is_refused_with_what_to_do_and_no_file(monitor_build: Path, tmp_path: Path) -> None:
    asked = command(monitor_build, tmp_path, "--trigger", "udp")
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "liteprobe: the probe can't look for a trigger among what this host filters: give --host-trigger"
    )
    assert not (tmp_path / "c.pcapng").exists() and not (tmp_path / "c.json").exists()
