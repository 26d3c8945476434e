# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe with meters as its registers show it (preset ``monitor``, and ``generator``): the truth for tests of the host."""

from typing import Any

from liteprobe.cores.formats import (
    BIN_SLOT_WORDS,
    PLACE_WORDS,
    PRESETS,
    RATE_INTERVAL_NS,
    STREAM_SLOT_WORDS,
    STREAM_SLOTS,
    BinKind,
    map_hash,
)
from liteprobe.sim.models.delay import signed
from liteprobe.sim.models.probe import CSR_BASE, EVENTS, PORT_STRIDE, STREAMS_BASE, ModelFrame, ModelProbe, Wire
from liteprobe.sim.models.streams import BinSettings, MeasuredFrame, PortMeterModel

BINS_BASE, PLACES_BASE = 0x68000000, 0x6C000000
STREAM_WORDS = STREAM_SLOTS * STREAM_SLOT_WORDS
BIN_WORDS = STREAM_SLOTS * BIN_SLOT_WORDS
KINDS = {BinKind.LENGTH: "length", BinKind.DELAY: "delay", BinKind.ARRIVAL: "arrival"}
SETTINGS = {"stream_base": 16, "measure_passed": 1, "length_origin": 16, "delay_origin": 64, "arrival_origin": 32}
SETTINGS |= {f"{name}_shift": 5 for name in KINDS.values()}
MEASURE = SETTINGS | {"clear": 1, "latch": 1, "saturated": 1}
FIELDS = {"prbs": 32}


def monitor_registers(ports: int, with_fields: bool = False) -> dict[str, tuple[int, bool]]:
    """Return width and whether it can be written, of each register that meters have more; no rates ``with_fields``."""
    names = MEASURE | FIELDS if with_fields else MEASURE
    found = (
        {} if with_fields else {"rates_interval": (32, True), "rates_number": (32, False), "rates_whole": (1, False)}
    )
    for port in range(ports):
        if not with_fields:
            found |= {f"rates_port{port}_frames": (28, False), f"rates_port{port}_octets": (32, False)}
        found |= {f"port{port}_measure_{name}": (width, name != "saturated") for name, width in names.items()}
    return found


def extended(register_map: dict[str, Any], ports: int, with_fields: bool) -> dict[str, Any]:
    """Return ``register_map`` with the registers and memories of meters."""
    registers, memories = dict(register_map["csr_registers"]), dict(register_map["memories"])
    address = max([CSR_BASE, *(entry["addr"] + 4 * entry["size"] for entry in registers.values())])
    for name, (width, is_writable) in monitor_registers(ports, with_fields).items():
        words = -(-width // 32)
        registers[name] = {"addr": address, "size": words, "type": "rw" if is_writable else "ro"}
        address += 4 * words
    for port in range(ports):
        for name, base, words in (("streams", STREAMS_BASE, STREAM_WORDS), ("bins", BINS_BASE, BIN_WORDS)):
            memories[f"port{port}_{name}"] = {"base": base + PORT_STRIDE * port, "size": 4 * words, "type": "io"}
        counted = registers[f"port{port}_rx_all_frames"]["addr"]
        memories[f"port{port}_snapshot"] = {"base": counted, "size": 8 * len(EVENTS), "type": "io"}
        if with_fields:
            places = PLACES_BASE + PORT_STRIDE * port
            memories[f"port{port}_places"] = {"base": places, "size": 4 * PLACE_WORDS, "type": "io"}
    return register_map | {"csr_registers": registers, "memories": memories}


class MonitorProbe(ModelProbe):
    """A probe whose ports measure what a test brings them.

    Parameters
    ----------
    ports : int
    with_fields : bool
        It checks fills, takes stamps from fields, and counts no rates, as a probe of preset generator does.
    wire : Wire
        What becomes of the frames of trains.

    Attributes
    ----------
    meters : list of PortMeterModel
        Of each port; bring frames with `arrive`.
    """

    def __init__(self, ports: int = 2, with_fields: bool = False, wire: Wire | None = None) -> None:
        super().__init__(wire, ports)
        self.map = extended(self.map, ports, with_fields)
        added = monitor_registers(ports, with_fields)
        self.values |= dict.fromkeys(added, 0)
        self.values |= {"probe_map_hash": map_hash(self.map), "rates_interval": RATE_INTERVAL_NS}
        for name in added:
            entry = self.map["csr_registers"][name]
            for number in range(entry["size"]):
                self._words[entry["addr"] + 4 * number] = (name, 32 * (entry["size"] - 1 - number))
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


class GeneratorProbe(MonitorProbe):
    """A probe of preset ``generator``: a train is measured by its meters; what a wire does to fills is what a test adds.

    Attributes
    ----------
    bit_errors : int
        Of each frame that arrives.
    """

    def __init__(self, wire: Wire | None = None) -> None:
        super().__init__(with_fields=True, wire=wire)
        self.values |= {"probe_parts": PRESETS["generator"], "probe_record_depth": 0}
        self.bit_errors = 0

    # # #

    def _receive(self, port: int, frame: ModelFrame) -> None:
        of_probe = (True, frame.stream_id, frame.sequence, frame.stamp, True, self.bit_errors)
        self.arrive(port, MeasuredFrame(self.now(), frame.length, int(frame.flags), *of_probe))

    def _rx_latch(self, port: int) -> None:
        self.values |= {f"port{port}_rx_{name}": self._live[port].get(name, 0) for name in EVENTS}
