# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of the pages that build, load, keep, write and restore, in the order of each page, at the simulated desk.

Stand-ins take the place of yosys, nextpnr and ecppack (sim/bench/desk/toolchain.py): each clock reaches what nextpnr is asked
for, 2 % more than the board's, and no place is taken. All else is done: Verilog, constraints, report, loader.
"""

from dataclasses import dataclass

from desk_step import HERE, PROBE, TOOLCHAIN, Step

from liteprobe.sim.bench.desk.desk import PINS, Setting

SWITCH = Setting()
CABLE = Setting(wire="cable")
PLACES = {
    "25": "lut4            0 of  24288    0.0 %\n  ff              0 of  24288    0.0 %\n  ebr             0 of     56    0.0 %\n"
    "  dsp             0 of     28    0.0 %\n  pll             0 of      2    0.0 %\n  io              0 of    197    0.0 %",
    "45": "lut4            0 of  43848    0.0 %\n  ff              0 of  43848    0.0 %\n  ebr             0 of    108    0.0 %\n"
    "  dsp             0 of     72    0.0 %\n  pll             0 of      4    0.0 %\n  io              0 of    245    0.0 %",
}
MHZ = {"sys": 50.0, "timebase": 125.0, "timebase2x": 250.0, "eth_rx0": 125.0, "eth_rx1": 125.0}
RGMII = "0.25 ns, RGMII transmit, hold (typically 1.00 ns)"
NO_SHEET = "0.20 ns, flash (data sheet not at hand), read hold (typically 0.70 ns)"
TRAIN = """
     length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity    owd ns ...
     ───...
         60    1000        1   100.00   1000.000        -   1000.000   1000.000    3576.0 ...      0     0       0      0
       1514    1000        1   100.00   1000.000        -   1000.000   1000.000   15208.0 ...      0     0       0      0
    Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
    Clock free-running; a delay is within 8.0 ns.
"""
CALIBRATION = ""


@dataclass(frozen=True)
class Page:
    """A board's page: the commands that differ from those of other boards, and what stands in their output.

    Attributes
    ----------
    board : str
    device : str
    size : str, 25 or 45.
    cable : str, JTAG.
    octets : int, of the flash.
    margin : str, the least of I/O.
    options : str, of each build; folder : str, of its products.
    missing : str, what is not built in, and a new line; "": nothing.
    unlock : str, what else the first write takes.
    """

    board: str
    device: str
    size: str
    cable: str
    octets: int
    margin: str
    options: str = ""
    folder: str = ""
    missing: str = ""
    unlock: str = ""

    @property
    def out(self) -> str:
        """Folder of the products."""
        return f"build/{self.folder or self.board}"

    def ask(self, *options: str) -> str:
        """Return what the loader is asked, as a line."""
        return f"> openFPGALoader --cable {self.cable} {' '.join(options)}\n"

    def built(self, missing: str = "", mhz: dict[str, float] | None = None, device: str = "", out: str = "") -> str:
        """Return what a build prints."""
        clocks = "".join(
            f"  {name:<10} {asked if name.startswith('eth') else 1.02 * asked:>7.2f} MHz, {asked:g} MHz asked for\n"
            for name, asked in sorted((mhz or MHZ).items())
        )
        return (
            f"{missing or self.missing}Verilog of {self.board}, into {out or self.out}\nsynthesis, yosys 0.0\n"
            f"place and route, nextpnr 0.0, seed ...\nbitstream, ecppack 0.0\n"
            f"{self.board} ({self.device}), seed ..., ... s\n  {PLACES[self.size]}\n{clocks}"
            f"  least margin of I/O, by data sheets: {self.margin}\n"
        )

    def keep(self) -> Step:
        """Return the backup."""
        said = (
            f"reading the {self.octets >> 20} MB of flash for a backup, which may take some minutes\n"
            f"backup of the flash: vendor.bin; 'liteprobe build {self.board} --restore vendor.bin' writes it back\n"
        )
        asked = self.ask("--detect") + self.ask("--dump-flash --offset 0 --file-size", str(self.octets), ".../flash.bin")
        return Step(f"liteprobe build {self.board} --backup vendor.bin", said + asked, TOOLCHAIN, board=self.board)

    def load(self, options: str = "", said: str = "") -> Step:
        """Return a build that is loaded."""
        said = (
            f"{said or self.built()}loading, JTAG cable {self.cable}\n"
            f"{self.out}/liteprobe.bit is loaded into {self.board}, until its power goes\n"
        )
        asked = 2 * self.ask("--detect") + self.ask(f"{self.out}/liteprobe.bit")
        return Step(f"liteprobe build {self.board}{self.options} --load{options}", said + asked, TOOLCHAIN, board=self.board)

    def flash(self, built: str = "") -> Step:
        """Return a build that goes into the flash, which is kept before, once."""
        kept = "...liteprobe/flash/" + self.board + "-....bin"
        said = (
            f"{built}writing the flash, JTAG cable {self.cable}\n"
            f"reading the {self.octets >> 20} MB of flash for a backup, which may take some minutes\n"
            f"backup of the flash: {kept}; 'liteprobe build {self.board} --restore {kept}' writes it back\n"
            f"{self.out}/liteprobe.bit is in the flash of {self.board}: switch it off and on\n"
        )
        unlock = " --unprotect-flash" if self.unlock else ""
        asked = 2 * self.ask("--detect") + self.ask("--dump-flash --offset 0 --file-size", str(self.octets), ".../flash.bin")
        asked += self.ask(f"--write-flash --verify{unlock} --offset 0x0 {self.out}/liteprobe.bit")
        return Step(f"liteprobe build {self.board}{self.options} --flash{self.unlock}", said + asked, TOOLCHAIN)

    def restore(self) -> Step:
        """Return the vendor's image written back."""
        said = (
            f"writing the whole flash, JTAG cable {self.cable}: this takes minutes\n"
            f"vendor.bin is in the flash of {self.board}: switch it off and on\n"
        )
        asked = self.ask("--detect") + self.ask("--write-flash --verify --offset 0x0 --file-type raw vendor.bin")
        return Step(f"liteprobe build {self.board} --restore vendor.bin", said + asked, TOOLCHAIN)


A75B = Page("colorlight_5a_75b", "LFE5U-25F-6BG256C", "25", "ft232", 4 << 20, RGMII)
I5 = Page("colorlight_i5", "LFE5U-25F-6BG381C", "25", "cmsisdap", 2 << 20, RGMII, unlock=" --unprotect")
I9 = Page(
    "colorlight_i9", "LFE5U-45F-6BG381C", "45", "cmsisdap", 8 << 20, NO_SHEET,
    " --preset tester", "colorlight_i9_tester", "not built in: streams to send (--traffic)\n", " --unprotect",
)  # fmt: skip
VERSA = Page("versa_ecp5", "LFE5UM5G-45F-8BG381C", "45", "ft2232", 16 << 20, NO_SHEET)
