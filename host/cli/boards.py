# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Names the boards to people, and finds the one that they mean."""

import difflib
import re

from liteprobe.host.base.errors import UsageError

#: Each board and revision by its name, as people say it; ``boards/`` has each.
BOARDS = {
    "colorlight_5a_75b": "Colorlight 5A-75B V8.0, LFE5U-25F: a receiver card with two sockets",
    "colorlight_5a_75b_v8_2": "Colorlight 5A-75B V8.2: the bitstream of V8.0",
    "colorlight_5a_75b_v7_0": "Colorlight 5A-75B V7.0, LFE5U-25F: other pins than V8.0",
    "colorlight_5a_75e": "Colorlight 5A-75E V7.1, LFE5U-25F: a receiver card with 16 LED connectors",
    "colorlight_5a_75e_v6_0": "Colorlight 5A-75E V6.0, LFE5U-25F: other pins than V7.1",
    "colorlight_5a_75e_v8_0": "Colorlight 5A-75E V8.0: the bitstream of V6.0",
    "colorlight_i5": "Colorlight i5 V7.0, LFE5U-25F: a module on its extension board, jacks to wire",
    "colorlight_i9": "Colorlight i9 V7.2, LFE5U-45F: a module on its extension board, jacks to wire",
    "versa_ecp5": "Lattice Versa ECP5-5G, LFE5UM5G-45F: two sockets, JTAG on board",
    "colorlight_i9plus": "Colorlight i9plus (i9+) V6.1, XC7A50T: Verilog, for openXC7 or Vivado",
    "sqrl_acorn": "SQRL Acorn CLE-215+ on a baseboard, XC7A200T: Verilog only, for Vivado",
}


def board_of(text: str) -> str:
    """Return the board that is meant, by its name or a part of it, like ``5a-75b`` or ``i5``.

    Raises UsageError when there is none, or several have the part.
    """
    name = "_".join(re.split(r"[\W_]+", text.strip().lower()))
    having = [board for board in BOARDS if f"_{name}_" in f"_{board}_"]
    ending = [board for board in having if board.endswith(name)]
    found = [name] if name in BOARDS else having if len(having) == 1 else ending
    if len(found) == 1:
        return found[0]
    names = {part: board for board in BOARDS for part in (board, board.partition("_")[2])}
    near = having or [names[one] for one in difflib.get_close_matches(name, names, n=2)]
    said = f"did you mean {' or '.join(near)}?" if near else f"give one of {', '.join(BOARDS)}"
    raise UsageError(f"there is no board '{text}': {said}")
