# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of the pages that build, load, keep, write and restore, in the order of each page, at the simulated desk.

Stand-ins take the place of yosys, nextpnr and ecppack (sim/bench/desk/toolchain.py): each clock reaches what nextpnr is asked
for, 2 % more than the board's, and no place is taken. All else is done: Verilog, constraints, report, loader.
"""

import re
from dataclasses import replace

from desk_page import FLASH, MHZ, RGMII, Page
from desk_step import PROBE, TOOLCHAIN, Step, info

from liteprobe.sim.bench.desk.desk import Setting

PHYS_NS = 16  # What the models of two PHYs take, a tick each way.
CABLE = Setting(wire="cable")
A75B = Page("colorlight_5a_75b", "LFE5U-25F-6BG256C", "25", "ft232", 4 << 20, RGMII, seed=4)
I5 = Page(
    "colorlight_i5", "LFE5U-25F-6BG381C", "25", "cmsisdap", 2 << 20, FLASH.format("GD25Q16C"), unlock=" --unprotect"
)
I9 = Page(
    "colorlight_i9",
    "LFE5U-45F-6BG381C",
    "45",
    "cmsisdap",
    8 << 20,
    FLASH.format("(data sheet not at hand)"),
    options=" --preset tester",
    folder="colorlight_i9_tester",
    missing="not built in: streams to send (--traffic)\n",
    unlock=" --unprotect",
)
VERSA = Page("versa_ecp5", "LFE5UM5G-45F-8BG381C", "45", "ft2232", 16 << 20, RGMII, mhz={**MHZ, "sys": 62.5})


def slower(**mhz: float) -> dict[str, float]:
    """Return the clocks of a build, those of 0 MHz left out."""
    return {name: asked for name, asked in {**MHZ, **mhz}.items() if asked}


def train(
    rows: str, command: str = "train --probe etherbone://192.168.1.50 --length 60,1514 --count 1000", **more: object
) -> Step:
    """Return a train over the network, of these lines of its table."""
    said = f"""
 length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity ...
 ───...
{rows}Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
Clock free-running; a delay is within ... ns.
"""
    return Step(f"liteprobe {command}", said, PROBE, **more)  # type: ignore[arg-type]


def lines(owds: dict[int, str], count: int = 1000) -> str:
    """Return the lines of trains at the line's whole rate: by length, the delay of all frames (ns)."""
    widest = max(map(len, owds.values()))
    return "".join(
        f"   {length:>4}   {count:>5}        1   100.00   1000.000        -   1000.000   1000.000   {owd:>{max(widest, 6)}}"
        f"   0.0   {owd:>{max(widest, 3)}}        0.0      0     0       0      0\n"
        for length, owd in owds.items()
    )


def switched(setting: Setting, phys_ns: int = PHYS_NS, count: int = 1000) -> tuple[Step, Step]:
    """Return train and calibration through a switch that stores 8 (L + 12) ns and takes 3 us, and PHYs."""
    owds = {length: f"{8 * (length + 12) + 3000 + phys_ns}.0" for length in (60, 1514)}
    said = f"""
              measured   +- 95 %   theory   difference   unit
 ───...
 slope          8.0000    0.0000   8.0000       0.0000   ns/B
 intercept   {3096 + phys_ns}.0000    0.0000   0.0000    {3096 + phys_ns}.0000     ns
70 trains; scatter about the line 0.000 ns. Repeat after each link-up.
"""
    command = "liteprobe calibrate --probe etherbone://192.168.1.50 --slope 8 --json switch.json"
    first = train(lines(owds, count), f"train {NETWORK} --length 60,1514 --count {count}", setting=setting)
    return first, Step(command, said, PROBE, setting=setting)


def build(
    page: Page, options: str = "", missing: str = "", mhz: dict[str, float] | None = None, also: tuple[str, ...] = ()
) -> Step:
    """Return a build with some options."""
    preset = re.search(r"--preset (\w+)", options)
    seed = re.search(r"--seed (\d+)", options)
    one = replace(page, seed=int(seed[1]) if seed else page.seed, folder=f"{page.board}_{preset[1]}" if preset else "")
    said = one.built(f"not built in: {missing}\n" if missing else "", mhz)
    return Step(f"liteprobe build {page.board}{options}", said, TOOLCHAIN, also=also, board=page.board)


NETWORK = "--probe etherbone://192.168.1.50"


def on(page: Page) -> Setting:
    """Return the board of a page on the desk, at a switch."""
    return Setting("tester" if page.options else "train", board=page.board)


def uart(device: str, lengths: tuple[int, ...] = (60, 1514), count: int = 1000) -> Step:
    """Return a train by the serial port, with a cable between the ports of a probe without PHYs: a tick of 8 ns."""
    asked = ",".join(map(str, lengths))
    owds = dict.fromkeys(lengths, "8.0")
    return train(lines(owds, count), f"train --probe {device} --length {asked} --count {count}", setting=CABLE)


def walk(page: Page, *after: Step, count: int = 1000) -> tuple[Step, ...]:
    """Return the commands of a board's page, in its order."""
    return (page.keep(), page.load(), *switched(on(page), count=count), page.flash(), page.restore(), *after)


LINKS = """
port0_phy         RTL8211F, MDIO 0
port0_link        1000 Mb/s
port0_eee         off
port1_phy         RTL8211F, MDIO 1
port1_link        1000 Mb/s
port1_eee         off
"""
INFO = info("etherbone://192.168.1.50", "colorlight_5a_75b", "build/colorlight_5a_75b/") + LINKS.lstrip()
PHYS = """
 port     PHY        MDIO     link        Energy Efficient Ethernet
 ───...
 0        RTL8211F   0        1000 Mb/s   off
 1        RTL8211F   1        1000 Mb/s   off
"""
EYE = """
tap 0 |####...####     ...     | 127
# all frames, . some, blank none
taps 0 to 99 (0.000 to 2.475 ns) bring all 20 frames; its first edge lies before tap 0, so the middle counts\
 from the last, with the width of data sheets.
Port 1 is set to tap 40 (1.000 ns) until the FPGA is loaded again.
"""
REPLAY_5A = " --preset replay --ports 1 --link own --no-cpu --no-sets --no-discipline --no-hash"
NO_SETS = "configuration sets (--sets)"
PLAIN_I9 = replace(I9, options="", folder="", missing="")
ACORN = """
Verilog of sqrl_acorn, into build/sqrl_acorn
Verilog, constraints and script: build/sqrl_acorn/gateware
register map: build/sqrl_acorn/csr.json
Linux driver and C library: build/sqrl_acorn/driver
next: docs/pcie.md says how to make the bitstream and the driver
"""
HELP = """
usage: liteprobe build ...
boards:
  colorlight_5a_75b       Colorlight 5A-75B V8.0, LFE5U-25F: a receiver card with two sockets
  colorlight_5a_75b_v8_2  Colorlight 5A-75B V8.2: the bitstream of V8.0
  colorlight_5a_75b_v7_0  Colorlight 5A-75B V7.0, LFE5U-25F: other pins than V8.0
  colorlight_5a_75e       Colorlight 5A-75E V7.1, LFE5U-25F: a receiver card with 16 LED connectors
  colorlight_5a_75e_v6_0  Colorlight 5A-75E V6.0, LFE5U-25F: other pins than V7.1
  colorlight_5a_75e_v8_0  Colorlight 5A-75E V8.0: the bitstream of V6.0
  colorlight_i5           Colorlight i5 V7.0, LFE5U-25F: a module on its extension board, jacks to wire
  colorlight_i9           Colorlight i9 V7.2, LFE5U-45F: a module on its extension board, jacks to wire
  versa_ecp5              Lattice Versa ECP5-5G, LFE5UM5G-45F: two sockets, JTAG on board
  sqrl_acorn              SQRL Acorn CLE-215+ on a baseboard, XC7A200T: Verilog only, for Vivado
...
options of the gateware come after BOARD: liteprobe build BOARD --help
"""
OF_I5 = (
    "liteprobe build colorlight_i5 --no-discipline",
    "liteprobe build colorlight_i5 --extend docs/labs/octet_counter.py",
)
#: Commands of pages, and which of the above each is, with the reader's own put in.
FILLED = {
    "liteprobe build BOARD --backup vendor.bin": "liteprobe build colorlight_i5 --backup vendor.bin",
    "liteprobe build BOARD --backup FILE": "liteprobe build colorlight_i5 --backup vendor.bin",
    "liteprobe build BOARD --load": "liteprobe build colorlight_i5 --load",
    "liteprobe build BOARD --flash": "liteprobe build colorlight_5a_75b --flash",
    "liteprobe build BOARD --restore FILE": "liteprobe build colorlight_i5 --restore vendor.bin",
    "liteprobe phy": f"liteprobe phy {NETWORK}",
    "liteprobe phy sweep": f"liteprobe phy sweep {NETWORK} --port 1",
    "liteprobe firmware flash": "liteprobe firmware flash --map build/colorlight_5a_75b/csr.json --board colorlight_5a_75b",
}
DESK = on(A75B)
NO_DOUBLE = slower(timebase2x=0)
A75B_UART = A75B.built(mhz=NO_DOUBLE)
PACKED = "...liteprobe.flash  ... bytes for the flash, version ..., gateware ...\n"
FIRMWARE = """
...liteprobe.flash  ... bytes for the flash, version ..., gateware ...
the flash of a colorlight_5a_75b was backed up before: ....bin (--backup FILE makes another)
...liteprobe.flash is in the flash of colorlight_5a_75b, from 0x100000 on
> openFPGALoader --cable ft232 --detect
> openFPGALoader --cable ft232 --write-flash --verify --offset 0x100000 --file-type raw ...liteprobe.flash
"""
A75B_MAP = "build/colorlight_5a_75b/csr.json"
SWITCHED, CALIBRATED = switched(DESK, PHYS_NS)
REPORTED = train(
    lines({1514: f"{15208 + PHYS_NS}.0"}),
    f"train {NETWORK} --length 1514 --count 1000 --report train.html",
    setting=DESK,
)
SESSIONS: dict[str, tuple[Step, ...]] = {
    "docs/boards/desk.md": (
        A75B.keep(),
        A75B.load(),
        Step(f"liteprobe info {NETWORK}", INFO, PROBE, setting=DESK),
        Step(f"liteprobe phy {NETWORK}", PHYS, PROBE, setting=DESK),
        SWITCHED,
        A75B.load(" --link uart", A75B_UART),
        uart("uart:///dev/ttyUSB0"),
        A75B.load(),
        CALIBRATED,
        train(
            lines({1514: "12112.0"}),
            f"train {NETWORK} --length 1514 --count 1000 --calibration switch.json",
            setting=DESK,
        ),
        A75B.flash(),
        Step(
            f"liteprobe firmware flash --map {A75B_MAP} --board colorlight_5a_75b", FIRMWARE, TOOLCHAIN, image=A75B_MAP
        ),
        Step(f"liteprobe firmware state {NETWORK}", "firmware was started from flash\n", PROBE, setting=Setting()),
        A75B.restore(),
    ),
    "docs/boards/colorlight-5a-75b.md": walk(
        A75B,
        A75B.load(" --link uart --uart-baud 9600", A75B_UART),
        uart("'uart:///dev/ttyUSB0?baud=9600'", (60,), 100),
    ),
    "docs/boards/colorlight-i5.md": walk(I5, I5.load(" --link uart"), uart("uart:///dev/ttyUSB0")),
    "docs/boards/colorlight-i9.md": walk(I9),
    "docs/boards/versa-ecp5.md": walk(
        VERSA, VERSA.load(" --link uart"), uart("uart:///dev/ttyUSB1", count=500), count=500
    ),
    "docs/phys.md": (
        A75B.load(),
        Step(
            f"liteprobe phy sweep {NETWORK} --port 1", EYE, PROBE, setting=DESK, also=("liteprobe phy sweep --port 1",)
        ),
    ),
    "docs/first-train.md": (A75B.load(), replace(REPORTED, said=f"{REPORTED.said}report: train.html\n")),
    "builds": (
        build(A75B, also=("liteprobe build colorlight_5a_75b",)),
        build(
            A75B,
            " --preset emulator --directions 1 --no-cpu --no-discipline --seed 2",
            "processor (--cpu), discipline of the clock (without --no-discipline)",
            slower(timebase2x=0, memory=80.0),
        ),
        build(
            A75B,
            f"{REPLAY_5A} --seed 1",
            "processor (--cpu), discipline of the clock (without --no-discipline), configuration sets (--sets), flow hash (--hash)",
            slower(timebase2x=0, memory=80.0),
            also=(f"liteprobe build colorlight_5a_75b{REPLAY_5A} --seed N",),
        ),
        build(
            A75B,
            " --replay --no-sets --ports 1 --link own --cpu --seed 1",
            "configuration sets (--sets)",
            slower(memory=80.0),
        ),
        A75B.load(" --ip-address 10.99.0.50"),
        build(I5, also=("liteprobe build BOARD",)),
        build(
            I5,
            " --no-discipline",
            "discipline of the clock (without --no-discipline)",
            NO_DOUBLE,
            also=("liteprobe build BOARD --no-discipline",),
        ),
        build(I5, " --extend docs/labs/octet_counter.py", also=("liteprobe build BOARD --extend FILE.py",)),
        build(PLAIN_I9),
        build(PLAIN_I9, " --preset tester", "streams to send (--traffic)"),
        build(
            PLAIN_I9,
            " --preset tester --replay",
            f"processor (--cpu), streams to send (--traffic), {NO_SETS}",
            slower(memory=80.0),
        ),
        build(
            PLAIN_I9,
            " --preset emulator --no-cpu --no-discipline",
            "processor (--cpu), discipline of the clock (without --no-discipline)",
            slower(timebase2x=0, memory=80.0, sys=1e3 / 20.8),
        ),
        build(
            PLAIN_I9,
            " --preset replay --extend docs/labs/octet_counter.py",
            f"processor (--cpu), {NO_SETS}",
            slower(memory=80.0),
        ),
        build(
            PLAIN_I9,
            " --preset replay --no-cpu --no-sets --seed 1",
            f"processor (--cpu), {NO_SETS}",
            slower(memory=80.0),
            also=("liteprobe build BOARD --preset replay",),
        ),
        Step("liteprobe firmware pack", PACKED, typed=f"liteprobe firmware pack --map {A75B_MAP}", image=A75B_MAP),
        Step("liteprobe build sqrl_acorn", ACORN),
        Step("liteprobe build --help", HELP),
    ),
}
