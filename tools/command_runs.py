# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of README and the pages whose output no page shows, and what they print; "..." stands for any text.

A test runs them in a folder of their own, beside the files of `prepare`. Those of SLOW build a simulated probe that no other
test of the host builds, or simulate for long: they wait for ``--full``.
"""

import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMES = 200
#: Files of the reader's own in the pages' commands: captures of small UDP datagrams.
CAPTURES = ("a.pcap", "office.pcap", "office.pcapng", "lan.pcap", "uplink.pcap", "east.pcap", "west.pcap")

QUICK = {
    "./run help": """
        usage: ./run COMMAND [ARGUMENTS]
        ...
        Each command does the set-up that it needs, once. Its log: build/setup.log
    """,
    "liteprobe --version": "liteprobe ...",
    "./run liteprobe send docs/examples/imix.yaml --check": """
         stream         id   port       length   frames    frames/s      Mb/s   of the line
         ──────────────────────────────────────────────────────────────────────────────────
         internet mix    1      0   60 to 1514   no end   196,420.8   600.000          60 %
         voice           2      0          214   no end    10,000.0    19.040       1.904 %
        port 0: 61.904 % of the line, where all are sent at once
    """,
    "liteprobe agent keys router": """
        router.key: for the other end
        router.key_secret: keep it on this machine, it is readable by you alone
    """,
    "liteprobe agent keys bench": """
        bench.key: for the other end
        bench.key_secret: keep it on this machine, it is readable by you alone
    """,
    "liteprobe replay office.pcapng --check": """
        ...can't start
         port     frames   octets          s      Mb/s   of the line       in time   cut
         ───────────────────────────────────────────────────────────────────────────────
         0           200   12,000   0.000399   337.119      33.712 %             0     0
    """,
    "liteprobe sets line.yaml --check": """
        fields              address, vlan, index
        octets of a set     9
        octets of all       24
        table               2 entries
        frames a second     1,000,000.0
        stream in runs, IP  65.753 Mb/s
        repeats             3
    """,
    "liteprobe train --probe sim://loopback --length 60 --count 100": """
         length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity   owd ns ...
         ───...
             60     100        1   100.00   1000.000        -   1000.000   1000.000      8.0 ...      0     0       0      0
        Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
        Clock free-running; a delay is within 8.0 ns.
    """,
}

IMIX = """
        ...least
         stream          sent   received   lost   dup   reord    late   bit err            Mb/s ...
         ───...
         internet mix   1,978      1,978      0     0       0   1,242         0   597.654±0.576   3,576   11,633.1 ... 15,208
         voice            101        101      0     0       0      60         -          19.030   4,808   10,818.9 ... 15,208
        10.097 ms, stopped. Clock free-running; a delay is within 8.0 ns. Delays ± by the width of a bin; ...
"""
SLOW = {
    "./run liteprobe train --probe 'sim://switch?latency=3us&rate=1G' --length 60,1514 --count 100": """
         length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity    owd ns ...
         ───...
             60     100        1   100.00   1000.000        -   1000.000   1000.000    3576.0 ...      0     0       0      0
           1514     100        1   100.00   1000.000        -   1000.000   1000.000   15208.0 ...      0     0       0      0
        Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
        Clock free-running; a delay is within 8.0 ns.
    """,
    "./run liteprobe train --probe 'sim://cable?preset=tester'": """
         length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity   owd ns ...
         ───...
           1514     100        1   100.00   1000.000        -   1000.000   1000.000      8.0 ...      0     0       0      0
        Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
        Clock free-running; a delay is within 8.0 ns.
    """,
    "./run liteprobe send docs/examples/imix.yaml --probe 'sim://switch?latency=3us&preset=tester' --duration 10ms": IMIX,
    "./run liteprobe send --length 64-1514 --rate 500M --exponential --fill prbs --duration 10ms": """
                                                                                          least
         stream   sent   received   lost   dup   reord   late   bit err            Mb/s      ns   mean ...
         ───...
         stream    792        792      0     0       0    403         0   497.798±0.577       8    8.0 ...
        10.069 ms, stopped. Clock free-running; a delay is within 8.0 ns. ...
    """,
    "./run liteprobe replay office.pcapng --probe 'sim://cable?preset=replay' --capture seen.pcapng --stamp octet:42": """
        ...least
         port     sent    of   late   had to   underruns   first      Mb/s   of line   resent      ns   mean ...
         ───...
         0         200   200      0        0           0       -   337.119   33.71 % ...       8    8.0     8     8 ...
        ... s, all was sent. Clock free-running; a delay is within 8.0 ns. Mb/s as planned, on the wire, ...
    """,
    "liteprobe replay east.pcap west.pcap --ports 0,1 --loop 10 --capture seen.pcapng --stamp ipv4.identification": """
        ...least
         port      sent      of   late   had to   underruns   first      Mb/s   of line   resent      ns   mean ...
         ───...
         0        2,000   2,000      0        -           0       -   337.119   33.71 % ...       8    8.0     8     8 ...
         1        2,000   2,000      0        -           0       -   337.119   33.71 % ...       8    8.0     8     8 ...
        ... s, all was sent. Clock free-running; a delay is within 8.0 ns. Mb/s as planned, on the wire, ...
    """,
    "./run liteprobe emulate --preset wifi-bursty --duration 30ms "
    "--probe 'sim://emulator?play=office.pcap,uplink.pcap&repeats=0'": """
        ╭─ there: port 0 → port 1 ...
        ...
        ╭─ back: port 1 → port 0 ...
        ...
         player       0   ...           0            0
         player       1   ...           0            0
        ... frames played, ... received.
        0.030 s, stopped after its time. Clock free-running.
    """,
    "./run liteprobe capture --probe "
    "'sim://loopback?preset=monitor&play=docs/examples/office.pcapng,docs/examples/office.pcapng' "
    "--filter 'udp port 53' --count 20 -w dns.pcapng": """
        ...
        20 frames, ... octets, in dns.pcapng
    """,
    "./run liteprobe sets sets.yaml --probe 'sim://cable?preset=replay'": """
        ...least
         port     sent   of   of sets   repeats   late   underruns   first      Mb/s   of line   resent ...
         ───...
         0           4    4         4         0      0           0       -   672.000   67.20 % ...
        ... s, all was sent. Clock free-running; a delay is within 8.0 ns. Mb/s as planned, on the wire, ...
    """,
    "liteprobe clock discipline --probe 'sim://pair?pps=1ms&cpu=0' --for 120ms --log clock.csv": """
        state        locked
        error bound  ... ns (95 %)
        now          ... ns
        offset       ... ns at the last edge
        rate         +... ppm of the oscillator
        drift        ... ppt/s
        edges        ... used, 0 rejected
        PPS          present, period 1000000 ns; 0 missing, 0 spurious, 0 glitches
        mode         discipline
    """,
    "liteprobe owd --from 'sim://pair?delay=1us&pps=1ms&cpu=0' --discipline 60ms --length 60,1514 --count 100 "
    "--interval 20us --both-ways --report owd.html": """
        sim://pair?delay=1us&pps=1ms&cpu=0 to sim://pair?delay=1us&pps=1ms&cpu=0&probe=b
         length   count   repeat ... lost
         ───...
             60     100        1   999.53   1.53   995.00   1003.00   1004.00      0
           1514     100        1   998.72   1.80   991.49   1000.21   1003.00      0
        Clocks locked and locked; a delay is within 34.3 ns (95 %), constant delays of the PHYs aside (--calibration).
        sim://pair?delay=1us&pps=1ms&cpu=0&probe=b to sim://pair?delay=1us&pps=1ms&cpu=0
        ...
             60     100        1   1000.56   1.35   999.26   1004.00   1007.48      0
           1514     100        1   1001.26   1.79   997.00   1005.00   1005.00      0
        Clocks locked and locked; a delay is within 34.7 ns (95 %), constant delays of the PHYs aside (--calibration).
    """,
    "liteprobe clock plot clock.csv --out clock.png": """
        ... edges of 1000000 ns, 0 missing, 0 outliers; oscillator +19.9... ppm; clock error ... ns RMS, ...
    """,
}

#: What has to be run before, in the same folder.
NEEDED = {
    "liteprobe clock plot clock.csv --out clock.png": (
        "liteprobe clock discipline --probe 'sim://pair?pps=1ms&cpu=0' --for 120ms --log clock.csv",
    ),
}


def datagram(number: int) -> bytes:
    """Return an Ethernet frame with a DNS query's ports; its octets count with ``number``."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, number, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    words = sum(struct.unpack("!10H", head))
    check = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    udp = struct.pack("!HHHH", 40000, 53, 26, 0) + bytes([number & 0xFF]) * 18
    return bytes.fromhex("020000000002020000000001 0800") + head[:10] + struct.pack("!H", check) + head[12:] + udp


def prepare(folder: Path) -> None:
    """Write the files that the pages take for granted into ``folder``: captures, and the documents that the pages show."""
    records = b"".join(struct.pack("<IIII", 0, 2000 * n, 60, 60) + datagram(n) for n in range(FRAMES))
    for name in CAPTURES:  # A pcap with nanoseconds, whatever the name says.
        (folder / name).write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + records)
    found = re.search(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs/sets.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found
    for name in ("line.yaml", "sets.yaml"):
        (folder / name).write_text(found[1], encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")


def printed(command: str, folder: Path) -> str:
    """Run a command in ``folder``, after those that it needs; return what it printed. ./run itself runs as it is."""
    for before in NEEDED.get(command, ()):
        run(before, folder)
    return run(command, folder)


def run(command: str, folder: Path) -> str:
    """Run one command in ``folder``; return what it printed, on stderr where nothing is on stdout."""
    words = shlex.split(command)
    if words[:2] == ["./run", "help"]:
        done = subprocess.run([ROOT / "run", *words[1:]], cwd=folder, check=True, capture_output=True, text=True)
    else:
        arguments = words[1:] if words[0] == "liteprobe" else words[2:]
        environment = {**os.environ, "LITEPROBE_BUILD": str(ROOT / "build"), "NO_COLOR": "1"}
        line = [sys.executable, "-m", "liteprobe.host.cli", *arguments]
        done = subprocess.run(line, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout or done.stderr
