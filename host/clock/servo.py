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


class ServoConfig(ctypes.Structure):
    """``struct lp_servo_config``."""

    _fields_ = (
        ("increment", ctypes.c_uint64),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "period_ns", "quantum_ps", "noise_ps", "sawtooth_ps", "wander_ps", "phase_walk_ps", "rate_walk_ppq",
                "drift_walk_ppq", "jerk_ppq", "rate_limit_ppm", "lock_ns", "jump_ns", "lost_ns",
            )
        ),
    )  # fmt: skip


class ServoRange(ctypes.Structure):
    """``struct lp_servo_range``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("least", ctypes.c_uint64),
        ("most", ctypes.c_uint64),
        ("offset", ctypes.c_uint16),
        ("octets", ctypes.c_uint16),
    )


class ServoStamp(ctypes.Structure):
    """``struct lp_servo_stamp``."""

    _fields_ = (("now", ctypes.c_uint64), ("fraction", ctypes.c_uint32), ("ticks", ctypes.c_uint64))


class ServoEdge(ctypes.Structure):
    """``struct lp_servo_edge``."""

    _fields_ = (
        ("stamp", ServoStamp),
        ("early_ps", ctypes.c_uint32),
        ("latency", ctypes.c_uint32),
        ("has_qerr", ctypes.c_bool),
        ("qerr_ps", ctypes.c_int32),
        ("has_second", ctypes.c_bool),
        ("second", ctypes.c_uint64),
    )


class ServoOutput(ctypes.Structure):
    """``struct lp_servo_output``."""

    _fields_ = (
        ("state", ctypes.c_int),
        ("is_used", ctypes.c_bool),
        ("increment", ctypes.c_uint64),
        ("has_adjust", ctypes.c_bool),
        ("adjust", ctypes.c_int64),
        ("behind", ctypes.c_int64),
        ("uncertainty", ctypes.c_uint32),
        ("offset", ctypes.c_int32),
        ("rate", ctypes.c_int32),
        ("drift", ctypes.c_int32),
        ("edges", ctypes.c_uint32),
        ("rejected", ctypes.c_uint32),
        ("holdover", ctypes.c_uint32),
    )


class Reference(ctypes.Structure):
    """``struct lp_reference``."""

    _fields_ = (
        ("is_tracking", ctypes.c_bool),
        ("row", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("left", ctypes.c_uint32),
        ("jumps", ctypes.c_uint32),
    )


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
