# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Folders as builds leave them, with bitstreams that nothing was built for, and releases of them."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import map_hash
from liteprobe.sim.drivers.tools.fake_loaders import bitstream
from liteprobe.soc.build.flagships import FLAGSHIPS
from liteprobe.soc.build.load import IDCODES, part_of

LENGTH = 5000  # Octets of a bitstream here.


def fake_map(name: str) -> dict[str, Any]:
    """Return a register map of a flagship, unlike that of any other."""
    registers = {"probe_map_hash": {"addr": 0xF0001000, "size": 1, "type": "ro"}}
    registers[f"{name.replace(':', '_')}_only"] = {"addr": 0xF0001004, "size": 1, "type": "rw"}
    identifier = f"liteprobe on {name.partition(':')[0]}"
    return {"csr_bases": {}, "csr_registers": registers, "constants": {"config_identifier": identifier}, "memories": {}}


def leave_build(folder: Path, name: str, register_map: dict[str, Any] | None = None, noise: bytes = b"") -> Path:
    """Leave in a folder of ``folder`` what a build of a flagship leaves, by its name; ``noise``: ends its bitstream. Return it."""
    one = next(one for one in FLAGSHIPS if str(one) == name)
    device = (
        "LFE5UM5G-45F-8BG381C"
        if one.board == "versa_ecp5"
        else f"LFE5U-{45 if one.board == 'colorlight_i9' else 25}F-6BG256C"
    )
    out = folder / f"{one.board}_{one.preset}"
    out.mkdir(parents=True)
    octets = bitstream(IDCODES[part_of(device)], LENGTH) + noise
    found = register_map or fake_map(name)
    report = {
        "board": one.board,
        "device": device,
        "config": asdict(one.config),
        "map_hash": map_hash(found),
        "seed": 1,
    }
    report["bitstream_sha256"] = hashlib.sha256(octets).hexdigest()
    (out / "liteprobe.bit").write_bytes(octets)
    (out / "csr.json").write_text(json.dumps(found))
    (out / "csr.csv").write_text("")
    (out / "report.json").write_text(json.dumps(report))
    return out
