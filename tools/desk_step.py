# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One command at the simulated desk (tools/command_desk.py), and what it prints."""

from dataclasses import dataclass, field

from liteprobe.sim.bench.desk.desk import Setting

TOOLCHAIN = "run, --full: stand-ins for toolchain and board"
PROBE = "run, --full: a simulated probe for a board"
HERE = "run, --full"
INFO = """
url               {url}
build             liteprobe on {board}
map               .../{folder}csr.json
map_hash          ...
parts             3
ports             2
record_depth      1024
ticks_per_second  125000000
data_width        32
now_ns            ...
lease             ... (pid ...) since ... UTC
tick_ns           8.0
clock_state       free-running
clock_error       error not known
preset            train
port0_link_up     True
port1_link_up     True
"""


@dataclass(frozen=True)
class Step:
    """A command of a page, and what it prints; "..." stands for any text, and lines with ">" are what the loader was asked.

    Attributes
    ----------
    command : str, as it stands on the page, without ``./run``.
    said : str
    how : str, what is said of how it is run.
    typed : str, what is run, where the page has something for the reader's own; "": the command as it stands.
    also : tuple of str, commands of pages that are this one, with something for the reader's own.
    setting : the probe on the desk; None: there is none.
    board : str, the board on the JTAG cable from now on; "": as before.
    image : str, register map for whose gateware firmware has been built before; "": none.
    files : dict of name to text, what the reader has written before.
    until : str, Ctrl-C comes once this was printed; "": it ends by itself.
    input : str, file that comes on stdin; "": nothing does.
    is_alone : bool, run in a network of its own, in which 127.0.0.1 is a probe.
    """

    command: str
    said: str
    how: str = HERE
    typed: str = ""
    also: tuple[str, ...] = ()
    setting: Setting | None = None
    board: str = ""
    image: str = ""
    files: dict[str, str] = field(default_factory=dict)
    until: str = ""
    input: str = ""
    is_alone: bool = False


def info(url: str, board: str = "simulated", folder: str = "") -> str:
    """Return what ``liteprobe info`` prints of a train's probe; what its PHYs say comes behind it."""
    return INFO.format(url=url, board=board, folder=folder)
