# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""docs/boards.md, which tools/boards_page.py writes, says what the reports of the builds say."""

import json

from boards_page import main

from liteprobe.boards import BOARDS


def report(seed, fmax_mhz, **config):
    return {
        "config": {"ports": 2, "link": "shared", "with_cpu": True, **config},
        "device": "LFE5U-25F-6BG256C",
        "seed": seed,
        "date": "2026-11-23",
        "seconds": {"synthesis": 61.4, "place_and_route": 99.8, "total": 165.2},
        "tools": {"yosys": "0.70", "nextpnr-ecp5": "0.11.1"},
        "area": {"lut4": {"used": 18000, "available": 24288, "percent": 74.1}},
        "clocks": {"sys": {"fmax_mhz": fmax_mhz, "constraint_mhz": 50.0}},
    }


def written(tmp_path):
    main(["--build", str(tmp_path), "--page", str(tmp_path / "boards.md")])
    return (tmp_path / "boards.md").read_text()


def test_page_holds_area_and_fmax_of_every_seed(tmp_path):
    for seed, fmax_mhz in [(10, 51.25), (2, 55.5)]:
        folder = tmp_path / "colorlight_5a_75b" / f"seed{seed}"
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(report(seed, fmax_mhz)))
    text = written(tmp_path)
    assert "| lut4 | 18000 | 24288 | 74.1 % |" in text
    assert "| clock | asked for | seed 2 | seed 10 |" in text
    assert "| sys | 50 MHz | 55.5 MHz | 51.2 MHz |" in text
    assert (
        "Seed 2 took 165 s (synthesis 61 s, place and route 100 s) with Yosys 0.70 and nextpnr 0.11.1, on 2026-11-23."
        in text
    )


def test_presets_have_sections_of_their_own_which_say_what_is_built_in(tmp_path):
    for name, config in [
        ("colorlight_i5", {}),
        ("colorlight_i5_monitor", {"ports": 1, "link": "own", "with_cpu": False}),
        ("colorlight_i9_tester", {"preset": "tester", "with_streams": False}),
        ("colorlight_i9_replay", {"preset": "replay", "with_discipline": False, "with_sets": False}),
        (
            "colorlight_i5_replay",
            {"preset": "replay", "ports": 1, "link": "own", "with_cpu": False, "with_discipline": False},
        ),
    ]:
        folder = tmp_path / name / "seed1"
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(report(1, 51.0, **config)))
    sections = {part.split("\n")[0]: part for part in written(tmp_path).split("## ")}
    train, monitor = sections["colorlight_i5"], sections["colorlight_i5, preset monitor"]
    assert "2 test ports, Etherbone in band, VexRiscv." in train
    assert "1 test port, Etherbone on a port of its own, no processor." in monitor
    assert "in band, VexRiscv, no streams to send." in sections["colorlight_i9, preset tester"]
    without = "in band, VexRiscv, no discipline of the clock, no configuration sets."
    assert without in sections["colorlight_i9, preset replay"]
    without = "1 test port, Etherbone on a port of its own, no processor, no discipline of the clock. The board: "
    assert without in sections["colorlight_i5, preset replay"]


def test_board_that_was_not_built_is_said(tmp_path):
    text = written(tmp_path)
    assert all(f"## {name}\n" in text and f"Not built yet: `./run build {name}`." in text for name in BOARDS)


def test_a_section_without_a_build_stays_as_it_was(tmp_path):
    for name in ("colorlight_5a_75b", "colorlight_i5_monitor"):
        folder = tmp_path / name / "seed1"
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(json.dumps(report(1, 51.0)))
    first = written(tmp_path)
    assert written(tmp_path) == first
    for path in tmp_path.glob("*/seed1/report.json"):
        path.unlink()
    assert written(tmp_path) == first
    (tmp_path / "colorlight_5a_75b/seed1/report.json").write_text(json.dumps(report(3, 54.0)))
    second = written(tmp_path)
    assert second == first.replace(
        "seed 1 |\n|---|---|---|\n| sys | 50 MHz | 51.0", "seed 3 |\n|---|---|---|\n| sys | 50 MHz | 54.0", 1
    ).replace("Seed 1", "Seed 3", 1)
