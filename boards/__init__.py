# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Names the boards: module, class and parameters of each. A module is imported only when its board is asked for."""

from importlib import import_module

BOARDS = {
    "colorlight_5a_75b":      ("colorlight_5a_75b", "Colorlight5A75B", {"revision": "8.0"}),
    "colorlight_5a_75b_v7_0": ("colorlight_5a_75b", "Colorlight5A75B", {"revision": "7.0"}),
    "colorlight_5a_75e":      ("colorlight_5a_75e", "Colorlight5A75E", {"revision": "7.1"}),
    "colorlight_5a_75e_v6_0": ("colorlight_5a_75e", "Colorlight5A75E", {"revision": "6.0"}),
    "colorlight_i5":          ("colorlight_i5",     "ColorlightI5",    {}),
    "colorlight_i9":          ("colorlight_i9",     "ColorlightI9",    {}),
    "versa_ecp5":             ("versa_ecp5",        "VersaEcp5",       {}),
}
# Revisions that another one's bitstream is for, too.
OTHER_NAMES = {
    "colorlight_5a_75b_v8_2": "colorlight_5a_75b",
    "colorlight_5a_75e_v8_0": "colorlight_5a_75e_v6_0",
}
# No tool chain of a registry makes their bitstreams: a build ends with Verilog, and what openXC7 or the vendor's tool needs.
VERILOG_ONLY = {
    "colorlight_i9plus": ("colorlight_i9plus", "ColorlightI9Plus", {}),
    "sqrl_acorn":        ("sqrl_acorn",        "SqrlAcorn",        {}),
}

def board(name):
    """Return a new board by its name; ValueError lists the names there are."""
    every = {**BOARDS, **VERILOG_ONLY}
    if name not in every and name not in OTHER_NAMES:
        raise ValueError(f"board {name!r} is not known: choose one of {', '.join([*every, *OTHER_NAMES])}")
    module, kind, parameters = every[OTHER_NAMES.get(name, name)]
    return getattr(import_module(f"liteprobe.boards.{module}"), kind)(**parameters)
