# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles the firmware's servo for this host: the same C that runs on the probe's processor.

Source and contract: firmware/lib/servo/servo.h.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

from liteprobe.host.base import folders
from liteprobe.host.base.errors import ProbeError, UsageError

#: Fields of ``ServoConfig`` that a profile has.
OF_PROFILE = (
    "noise_ps", "sawtooth_ps", "wander_ps", "phase_walk_ps", "rate_walk_ppq", "drift_walk_ppq", "jerk_ppq",
)  # fmt: skip
LIBRARY = folders.ROOT / "firmware" / "lib"
BUILD = "firmware-host"
OPTIONS = ("-std=c11", "-O2", "-shared", "-fPIC")
# The one thing that the header leaves to whoever includes it.
SIZE = """#include "servo/servo.h"
unsigned int lp_servo_size(void);
unsigned int lp_servo_size(void) { return sizeof(struct lp_servo); }
"""


#: Types of C, as the declarations below name them.
TYPES: dict[str, Any] = {"bool": ctypes.c_bool, "int": ctypes.c_int, "text": ctypes.c_char_p}
TYPES |= {
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "i32": ctypes.c_int32,
    "u64": ctypes.c_uint64,
    "i64": ctypes.c_int64,
}


def declared(**names_of: str) -> list[tuple[str, Any]]:
    """Return fields of a structure by type, of runs that C has one after the other; ``u32_2``: the second run of that type."""
    return [(name, TYPES[kind.partition("_")[0]]) for kind, names in names_of.items() for name in names.split()]


class ServoConfig(ctypes.Structure):
    """``struct lp_servo_config``."""

    _fields_ = declared(
        u64="increment",
        u32="period_ns quantum_ps noise_ps sawtooth_ps wander_ps phase_walk_ps rate_walk_ppq drift_walk_ppq jerk_ppq "
        "rate_limit_ppm lock_ns jump_ns lost_ns",
    )


class ServoRange(ctypes.Structure):
    """``struct lp_servo_range``."""

    _fields_ = declared(text="name", u64="least most", u16="offset octets")


class ServoStamp(ctypes.Structure):
    """``struct lp_servo_stamp``."""

    _fields_ = declared(u64="now", u32="fraction", u64_2="ticks")


class ServoEdge(ctypes.Structure):
    """``struct lp_servo_edge``."""

    _fields_ = (
        ("stamp", ServoStamp),
        *declared(u32="early_ps latency", bool="has_qerr", i32="qerr_ps", bool_2="has_second", u64="second"),
    )


class ServoOutput(ctypes.Structure):
    """``struct lp_servo_output``."""

    _fields_ = declared(
        int="state", bool="is_used", u64="increment", bool_2="has_adjust", i64="adjust behind",
        u32="uncertainty", i32="offset rate drift", u32_2="edges rejected holdover",
    )  # fmt: skip


class Reference(ctypes.Structure):
    """``struct lp_reference``."""

    _fields_ = declared(bool="is_tracking", u32="row size left jumps")


class Servo:
    """A servo of its own, and the watch over its reference.

    ``period_ns``: between two pulses, 1 ms to 1.4 s.
    ``settings``: further fields of ``ServoConfig`` (``sawtooth_ps=0``); all others as ``lp_servo_defaults`` has them.
    Raises UsageError when a value is out of its range, ProbeError when there is no C compiler, or no source.
    """

    def __init__(self, period_ns: int, **settings: int) -> None:
        self._library = ctypes.CDLL(str(compile_library()))
        config = ServoConfig()
        self._library.lp_servo_defaults(ctypes.byref(config))
        for name, value in {"period_ns": period_ns, **settings}.items():
            largest = 2 ** (8 * getattr(ServoConfig, name).size) - 1
            # ctypes would cut off what doesn't fit; the largest is out of range for all settings.
            setattr(config, name, value if 0 <= value <= largest else largest)
        self.config = config
        self._state = ctypes.create_string_buffer(self._library.lp_servo_size())
        self._reference = Reference()
        self._library.lp_reference_edge.restype = self._library.lp_reference_silence.restype = ctypes.c_bool
        self._library.lp_servo_refused.restype = ctypes.POINTER(ServoRange)
        if refused := self._library.lp_servo_refused(ctypes.byref(config)):
            name, range_ = refused.contents.name.decode(), refused.contents
            value = {"period_ns": period_ns, **settings}[name]
            if name == "period_ns":
                raise UsageError(f"the servo's {name} can't be {value}: give 1 ms to 1.4 s (--period)")
            raise UsageError(f"the servo's {name} can't be {value}: give {range_.least} to {range_.most}")
        self._library.lp_servo_init(self._state, ctypes.byref(config))

    def reacquire(self) -> None:
        """Forget pulses and rate, keep the clock as it runs, and acquire again."""
        self._library.lp_servo_reacquire(self._state)

    def edge(self, edge: ServoEdge) -> ServoOutput:
        out = ServoOutput()
        self._library.lp_servo_edge(self._state, ctypes.byref(edge), ctypes.byref(out))
        return out

    def refuse(self, out: ServoOutput) -> ServoOutput:
        """Say that the step of ``out`` was not made: what to do in its place, which is to slew."""
        self._library.lp_servo_refuse(self._state, ctypes.byref(out))
        return out

    def has_jumped(self, out: ServoOutput, is_edge: bool) -> bool:
        """Widen the bound of ``out`` where the reference has moved, or seems to, and return whether.

        Call it once after each pulse and silence, and after `refuse`.
        """
        take = self._library.lp_reference_edge if is_edge else self._library.lp_reference_silence
        return bool(take(ctypes.byref(self._reference), ctypes.byref(out)))

    @property
    def jumps(self) -> int:
        return int(self._reference.jumps)

    def silence(self, stamp: ServoStamp, latency: int) -> ServoOutput:
        """Say that there was no pulse, once a period, half a period after it was due."""
        out = ServoOutput()
        self._library.lp_servo_silence(self._state, ctypes.byref(stamp), ctypes.c_uint32(latency), ctypes.byref(out))
        return out


def profile(receiver: str = "timing", oscillator: str = "xo") -> dict[str, int]:
    """Return the settings of a servo for a receiver and an oscillator, as firmware/lib/profile names them.

    Raises UsageError when there is none of this name.
    """
    library = ctypes.CDLL(str(compile_library()))
    numbers = []
    for kind, asked in (("receiver", receiver), ("oscillator", oscillator)):
        names = _names(getattr(library, f"lp_profile_{kind}_name"))
        if asked not in names:
            raise UsageError(f"there is no {kind} '{asked}': give one of {', '.join(names)}")
        numbers.append(names.index(asked))
    config = ServoConfig()
    library.lp_profile_apply(ctypes.byref(config), *map(ctypes.c_uint32, numbers))
    return {name: getattr(config, name) for name in OF_PROFILE}


def _names(name_of: Any) -> list[str]:
    """Return the names that a function of a number gives, from 0 up to where it gives none."""
    name_of.restype = ctypes.c_char_p
    return [name.decode() for name in iter(map(name_of, count()).__next__, None)]


def compile_library() -> Path:
    """Compile firmware/lib into a shared library; its path, cached by content.

    Raises ProbeError when there is no C compiler, or no source.
    """
    sources = sorted(LIBRARY.glob("*/*.c"))
    if not sources:
        raise ProbeError(f"there is no servo in {LIBRARY}: install LiteProbe again, whole")
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise ProbeError(
            "the servo is compiled here, and there is no C compiler: type  apt-get install gcc  or name one in CC"
        )
    content = b"".join(path.read_bytes() for path in [*sources, *sorted(LIBRARY.glob("*/*.h"))])
    key = hashlib.sha256(content + repr((compiler, OPTIONS, SIZE)).encode()).hexdigest()[:16]
    folder = folders.build_folder() / BUILD
    library = folder / f"servo-{key}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    size = folder / f"servo-{key}.{os.getpid()}.c"
    unfinished = size.with_suffix(".so")
    size.write_text(SIZE, encoding="utf-8")
    command = [compiler, *OPTIONS, f"-I{LIBRARY}", *map(str, sources), str(size), "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    size.unlink()
    if done.returncode:
        raise ProbeError(f"the servo can't be compiled by {compiler}; it says:\n{done.stderr[-2000:]}")
    unfinished.rename(library)
    return library
