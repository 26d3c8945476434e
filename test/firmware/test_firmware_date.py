# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Firmware knows the day before which no receiver's date can be: that of its build, unless its user says otherwise."""

import json
import re
import time
from calendar import timegm
from pathlib import Path

import pytest

from liteprobe.cores.formats import map_hash
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device import firmware_build
from liteprobe.host.device.firmware import FIELDS, SIGNATURE
from liteprobe.host.device.firmware_build import DAY_S, FIRMWARE, NOT_BEFORE, Tools, build, dated

OPTION = "-DCONFIG_LITEPROBE_NOT_BEFORE="
NOON = timegm((2031, 5, 7, 12, 0, 0))
EVE = timegm((2031, 5, 6, 0, 0, 0))


def test_the_date_is_the_day_before_the_build_s() -> None:
    assert dated({"SOURCE_DATE_EPOCH": str(NOON)}) == (f"{OPTION}{EVE}",)
    assert dated({"SOURCE_DATE_EPOCH": str(EVE + 2 * DAY_S - 1)}) == (f"{OPTION}{EVE}",)
    assert dated({"SOURCE_DATE_EPOCH": str(EVE + 2 * DAY_S)}) == (f"{OPTION}{EVE + DAY_S}",)


def test_without_one_it_is_today_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOON + 0.5)
    assert dated({}) == dated({"SOURCE_DATE_EPOCH": ""}) == (f"{OPTION}{EVE}",)


@pytest.mark.parametrize("seconds", [0, NOT_BEFORE, NOT_BEFORE + 2 * DAY_S - 1])
def test_one_that_is_not_after_the_default_changes_nothing(seconds: int) -> None:
    assert dated({"SOURCE_DATE_EPOCH": str(seconds)}) == ()


@pytest.mark.parametrize("text", ["-1", "1.5", "today", " 7"])
def test_what_is_no_number_of_seconds_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"SOURCE_DATE_EPOCH is {text!r}: give seconds since 1970")):
        dated({"SOURCE_DATE_EPOCH": text})


def test_the_default_is_that_of_kconfig_and_of_the_library() -> None:
    kconfig = (FIRMWARE / "app" / "Kconfig").read_text()
    header = (FIRMWARE / "lib" / "second" / "second.h").read_text()
    found = re.search(r"config LITEPROBE_NOT_BEFORE\n.*\n\tdefault (\d+)\n", kconfig)
    assert found and int(found[1]) == NOT_BEFORE == timegm((2026, 1, 1, 0, 0, 0))
    assert f"#define LP_SECOND_NOT_BEFORE {NOT_BEFORE}\n" in header


def test_cmake_is_given_the_date_before_what_the_user_defines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of two wins; the tools are stood in for."""
    soc = {"csr_registers": {}, "memories": {"main_ram": {"base": 0, "size": 4096}}}
    (tmp_path / "csr.json").write_text(json.dumps(soc))
    seen: list[list[str]] = []

    def run(command: list[str], environment: object, log: Path) -> None:
        seen.append(command)
        image = tmp_path / "out" / "zephyr" / "zephyr" / "zephyr.bin"
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(FIELDS.pack(SIGNATURE, 1, map_hash(soc), 0, 4096, b"1.2.3") + bytes(64))

    monkeypatch.setattr(firmware_build, "_run", run)
    tools = Tools(Path("zephyr"), Path("python"), (), {"SOURCE_DATE_EPOCH": str(NOON)})
    build(tmp_path / "csr.json", tools, tmp_path / "out", (f"{OPTION}1",))
    (configure,) = [command for command in seen if command[0] == "cmake"]
    assert [word for word in configure if word.startswith(OPTION)] == [f"{OPTION}{EVE}", f"{OPTION}1"]
