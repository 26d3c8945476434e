# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What is said when a probe was built without a part that something needs."""

from liteprobe.cores.formats import PRESETS, Part, preset_of

OPTIONS = {
    Part.STREAMS: "--traffic",
    Part.REPLAY: "--replay",
    Part.SETS: "--sets",
}  # Of a build, by the part that a preset may have or not.


def lacking(url: str, parts: Part, part: Part) -> str:
    """Return that the probe at ``url``, which has ``parts``, has none of ``part``, and how to get one that has."""
    names = " or ".join(str(one.name).lower() for one in part)
    own = preset_of(parts)
    presets = " or ".join(name for name, its_parts in PRESETS.items() if part & its_parts and name != own)
    fix = f"give it as preset={presets}" if url.startswith("sim://") else f"build and load one with --preset {presets}"
    if not presets:
        fix = "no preset of this version has it"
    if part & PRESETS[own]:  # Its board had no room, or it wasn't asked for.
        fix += f", or a {own} with {OPTIONS.get(part, '--traffic')}, where its board has room"
    return f"{url} was built without the part {names}: {fix}"
