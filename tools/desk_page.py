# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What the commands of a board's page print at the simulated desk: backup, builds, load, flash, restore."""

from dataclasses import dataclass, field

from desk_step import TOOLCHAIN, Step

PLACES = {
    "25": "lut4            0 of  24288    0.0 %\n  ff              0 of  24288    0.0 %\n  ebr             0 of     56    0.0 %\n"
    "  dsp             0 of     28    0.0 %\n  pll             0 of      2    0.0 %\n  io              0 of    197    0.0 %",
    "45": "lut4            0 of  43848    0.0 %\n  ff              0 of  43848    0.0 %\n  ebr             0 of    108    0.0 %\n"
    "  dsp             0 of     72    0.0 %\n  pll             0 of      4    0.0 %\n  io              0 of    245    0.0 %",
}
MHZ = {"sys": 50.0, "timebase": 125.0, "timebase2x": 250.0, "eth_rx0": 125.0, "eth_rx1": 125.0}
RGMII = "0.25 ns, RGMII transmit, hold (typically 1.00 ns)"
FLASH = "0.20 ns, flash {}, read hold (typically 0.70 ns)"


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
    seed : int
    mhz : dict, what each clock is asked for (MHz).
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
    seed: int = 1
    mhz: dict[str, float] = field(default_factory=lambda: MHZ)

    @property
    def out(self) -> str:
        """Folder of the products."""
        return f"build/{self.folder or self.board}"

    def ask(self, *options: str) -> str:
        """Return what the loader is asked, as a line."""
        return f"> openFPGALoader --cable {self.cable} {' '.join(options)}\n"

    def built(self, missing: str = "", mhz: dict[str, float] | None = None, out: str = "", is_new: bool = True) -> str:
        """Return what a build prints; one that is not new runs no tool."""
        clocks = "".join(
            f"  {name:<10} {asked if name.startswith('eth') else 1.02 * asked:>7.2f} MHz, {round(asked, 1):g} MHz asked for\n"
            for name, asked in sorted((mhz or self.mhz).items())
        )
        tools = f"synthesis, yosys 0.0\nplace and route, nextpnr 0.0, seed {self.seed}\nbitstream, ecppack 0.0\n"
        return (
            f"{missing or self.missing}Verilog of {self.board}, into {out or self.out}\n{tools if is_new else ''}"
            f"{self.board} ({self.device}), seed {self.seed}, ... s\n  {PLACES[self.size]}\n{clocks}"
            f"  least margin of I/O, by data sheets: {self.margin}\n"
        )

    def keep(self) -> Step:
        """Return the backup."""
        said = (
            f"reading the {self.octets >> 20} MB of flash for a backup, which may take some minutes\n"
            f"backup of the flash: vendor.bin; 'liteprobe build {self.board} --restore vendor.bin' writes it back\n"
        )
        asked = self.ask("--detect") + self.ask(
            "--dump-flash --offset 0 --file-size", str(self.octets), ".../flash.bin"
        )
        return Step(f"liteprobe build {self.board} --backup vendor.bin", said + asked, TOOLCHAIN, board=self.board)

    def load(self, options: str = "", said: str = "") -> Step:
        """Return a build that is loaded."""
        said = (
            f"{said or self.built()}loading, JTAG cable {self.cable}\n"
            f"{self.out}/liteprobe.bit is loaded into {self.board}, until its power goes\n"
        )
        asked = 2 * self.ask("--detect") + self.ask(f"{self.out}/liteprobe.bit")
        return Step(
            f"liteprobe build {self.board}{self.options} --load{options}", said + asked, TOOLCHAIN, board=self.board
        )

    def flash(self) -> Step:
        """Return a build that goes into the flash, which is kept before, once."""
        kept = "...liteprobe/flash/" + self.board + "-....bin"
        said = (
            f"{self.built(is_new=False)}writing the flash, JTAG cable {self.cable}\n"
            f"reading the {self.octets >> 20} MB of flash for a backup, which may take some minutes\n"
            f"backup of the flash: {kept}; 'liteprobe build {self.board} --restore {kept}' writes it back\n"
            f"{self.out}/liteprobe.bit is in the flash of {self.board}: switch it off and on\n"
        )
        unlock = " --unprotect-flash" if self.unlock else ""
        asked = 2 * self.ask("--detect") + self.ask(
            "--dump-flash --offset 0 --file-size", str(self.octets), ".../flash.bin"
        )
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
