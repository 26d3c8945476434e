# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe with meters as its registers show it (preset ``monitor``, and ``generator``): the truth for tests of the host."""

from liteprobe.cores.formats import (
    BIN_SLOT_WORDS,
    PLACE_WORDS,
    PRESETS,
    RATE_INTERVAL_NS,
    STREAM_SLOT_WORDS,
    STREAM_SLOTS,
    BinKind,
)
from liteprobe.sim.models.probe.trains import EVENTS, PORT_STRIDE, STREAMS_BASE, ModelFrame, ModelProbe, Wire, registers
from liteprobe.sim.models.receive.meters import BinSettings, MeasuredFrame, PortMeterModel, signed

BINS_BASE, PLACES_BASE = 0x68000000, 0x6C000000
STREAM_WORDS = STREAM_SLOTS * STREAM_SLOT_WORDS
BIN_WORDS = STREAM_SLOTS * BIN_SLOT_WORDS
KINDS = {BinKind.LENGTH: "length", BinKind.DELAY: "delay", BinKind.ARRIVAL: "arrival"}
SETTINGS = registers("stream_base:16 measure_passed:1 length_origin:16 delay_origin:64 arrival_origin")
SETTINGS |= registers("length_shift:5 delay_shift:5 arrival_shift:5")
MEASURE = SETTINGS | registers("clear:1 latch:1 saturated:1")


class MonitorProbe(ModelProbe):
    """A probe whose ports measure what a test brings them.

    Parameters
    ----------
    with_fields : it checks fills, takes stamps from fields, and counts no rates, as a probe of preset generator does.
    wire : what becomes of the frames of trains.

    ``meters``: of each port; bring frames with `arrive`.
    """

    def __init__(
        self, ports: int = 2, with_fields: bool = False, wire: Wire | None = None, with_clock: bool = False
    ) -> None:
        super().__init__(wire, ports, with_clock=with_clock)
        if not with_fields:
            self.extend("rates", registers("interval number whole:1"), {"interval"})
            self.values["rates_interval"] = RATE_INTERVAL_NS
        for port in range(ports):
            if not with_fields:
                self.extend(f"rates_port{port}", registers("frames:28 octets"), ())
            measure = MEASURE | registers("prbs") if with_fields else MEASURE
            self.extend(f"port{port}_measure", measure, measure.keys() - {"saturated"})
            self.extend_memories(port, {"streams": (STREAMS_BASE, STREAM_WORDS), "bins": (BINS_BASE, BIN_WORDS)})
            counted = self.map["csr_registers"][f"port{port}_rx_all_frames"]["addr"] - PORT_STRIDE * port
            self.extend_memories(port, {"snapshot": (counted, 2 * len(EVENTS))})
            if with_fields:
                self.extend_memories(port, {"places": (PLACES_BASE, PLACE_WORDS)})
        self.meters = [PortMeterModel() for _ in range(ports)]

    def arrive(self, port: int, frame: MeasuredFrame) -> None:
        """Bring a frame to a port, and to its bins as they read now."""
        self._add(port, all_frames=1, all_octets=frame.length)
        self.meters[port].arrive(frame)
        self.show(BINS_BASE + PORT_STRIDE * port, [count for slot in self.meters[port].bins for count in slot])
        self.values[f"port{port}_measure_saturated"] = int(self.meters[port].saturated)

    def end_interval(self, frames: list[int], octets: list[int], is_whole: bool = True) -> None:
        """Let an interval of rates end, in which each port had so many frames and octets."""
        self.values |= {"rates_number": self.values["rates_number"] + 1, "rates_whole": int(is_whole)}
        for port, (count, total) in enumerate(zip(frames, octets, strict=True)):
            self.values |= {f"rates_port{port}_frames": count, f"rates_port{port}_octets": total}

    # # #

    def _act(self, name: str, word: int) -> None:
        if "_measure_" not in name:
            super()._act(name, word)
            return
        port, strobe = int(name[4]), name.rpartition("_measure_")[2]
        meter = self.meters[port]
        if strobe == "latch":
            self.show(STREAMS_BASE + PORT_STRIDE * port, meter.words())
        elif strobe == "clear":
            meter.clear()
            self.show(BINS_BASE + PORT_STRIDE * port, [0] * BIN_WORDS)
            self.values[f"port{port}_measure_saturated"] = 0
        else:
            meter.prbs = self.values.get(f"port{port}_measure_prbs", 0)
            values = {key: self.values[f"port{port}_measure_{key}"] for key in SETTINGS}
            meter.stream_base, meter.measure_passed = values["stream_base"], bool(values["measure_passed"])
            values["delay_origin"] = signed(values["delay_origin"])
            meter.settings = BinSettings(
                {kind: values[f"{key}_origin"] for kind, key in KINDS.items()},
                {kind: values[f"{key}_shift"] for kind, key in KINDS.items()},
            )

    def _rx_latch(self, port: int) -> None:
        self.values |= {f"port{port}_rx_{name}": self._live[port].get(name, 0) for name in EVENTS}


class GeneratorProbe(MonitorProbe):
    """A probe of preset ``generator``: a train is measured by its meters; what a wire does to fills is what a test adds.

    ``bit_errors``: of each frame that arrives.
    """

    def __init__(self, wire: Wire | None = None) -> None:
        super().__init__(with_fields=True, wire=wire)
        self.values |= {"probe_parts": PRESETS["generator"], "probe_record_depth": 0}
        self.bit_errors = 0

    # # #

    def _receive(self, port: int, frame: ModelFrame) -> None:
        of_probe = (True, frame.stream_id, frame.sequence, frame.stamp, True, self.bit_errors)
        self.arrive(port, MeasuredFrame(self.now(), frame.length, int(frame.flags), *of_probe))
