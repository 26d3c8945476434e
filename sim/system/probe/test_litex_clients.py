# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""LiteX's own programs drive a simulated probe: litex_server, RemoteClient, litex_cli and litescope_cli, as they are installed."""

import contextlib
import json
import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest
from litex.tools import litex_client
from litex.tools.litex_client import RemoteClient

from liteprobe.host import TrainProgram
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.management.litex import Server, served
from liteprobe.sim.system.build import SCOPE, build_probe

litescope_cli = pytest.importorskip(
    "litescope.software.litescope_cli", reason="litescope isn't installed: ./run setup base"
)


@pytest.fixture(scope="module")
def server(own: Path) -> Iterator[Server]:
    with served(own) as one:
        yield one


def cli(server: Server, *arguments: str) -> None:
    """Run litex_cli's own main."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["litex_cli", "--csr-csv", str(server.csv), "--port", str(server.tcp_port), *arguments]
        )
        litex_client.main()


def test_litex_cli_shows_the_identifier_and_each_register_as_our_host_reads_it(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    cli(server, "--ident")
    assert capsys.readouterr().out.strip(" \0\n").startswith("liteprobe on ")
    cli(server, "--regs")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {name: (int(address, 16), int(value, 16)) for address, _, value, name in lines}
    with contextlib.closing(server.probe()) as probe:
        names = probe.registers.names
        assert sorted(shown) == sorted(names)
        assert {name: address for name, (address, _) in shown.items()} == {
            name: probe.registers.register(name).address for name in names
        }
        still = [
            name for name in names if not re.match(r"(timebase|timer0|uart|gnss|pps|clock|management_port)_", name)
        ]
        assert {name: shown[name][1] for name in still} == {name: probe.registers.read(name) for name in still}
        assert shown["probe_map_hash"][1] == probe.registers.read("probe_map_hash") != 0


def test_bursts_of_every_length_come_back_as_they_were_written(server: Server) -> None:
    rand = random.Random(37)
    client = server.client()
    words = [rand.getrandbits(32) for _ in range(256)]
    base = client.mems.main_ram.base
    for count in (1, 2, 3, 63, 64, 65, 127, 128, 129, 200, 254, 255):
        words = [rand.getrandbits(32) for _ in range(count)]
        place = base + 4 * rand.randrange(4096)
        client.write(place, words)
        assert client.read(place, count) == words
    client.close()


def test_a_burst_of_256_words_is_refused_by_litex_itself(server: Server) -> None:
    client = server.client()
    with pytest.raises(ValueError, match="exceeds maximum of 255"):
        client.write(client.mems.main_ram.base, [0] * 256)
    client.close()


def test_writes_beside_a_host_that_has_the_lease_are_left_out_and_its_train_says_so(server: Server) -> None:
    client = server.client()
    register = client.regs.port0_tx_length
    with contextlib.closing(server.probe()) as probe:
        probe.lease.ensure()
        before = probe.registers.read("probe_writes_skipped")
        register.write(999)
        assert register.read() == probe.registers.read("port0_tx_length") != 999
        assert client.regs.probe_lease_owner.read() >> 16
        result = probe.train(TrainProgram(60, 10), receive=0)
        assert result.notes == (
            "another host, without the lease, wrote to the probe: its writes were left out (requests: 1)",
        )
        assert probe.registers.read("probe_writes_skipped") == before + 1
        assert probe.train(TrainProgram(60, 10), receive=0).notes == ()
    assert client.regs.probe_lease_owner.read() >> 16 == 0
    register.write(999)
    assert register.read() == 999
    client.close()


# LiteScope ----------------------------------------------------------------------------------------


def frames_of(dump: Path) -> list[tuple[int, bytes]]:
    """Return whole frames of a dump: in which sample the octet after the SFD is, and octets from there to the FCS."""
    samples = {name: values[::2] for name, values in json.loads(dump.read_text()).items()}
    octets = bytes(samples["port0_tx_data"])
    valid = "".join(map(str, samples["port0_tx_valid"]))
    found = []
    for match in re.finditer("(?<=0)1+(?=0)", valid):
        frame = octets[match.start() : match.end()]
        assert frame[:8] == bytes.fromhex("55555555555555d5")
        found.append((match.start() + 8, frame[8:]))
    return found


def test_litescope_shows_what_the_simulation_has_on_its_wire(tmp_path: Path) -> None:
    folder = build_probe("own", with_cpu=False, extension=SCOPE)
    dump = tmp_path / "dump.json"
    with served(folder, f"&pcap={tmp_path}/wire") as server, pytest.MonkeyPatch.context() as patch:
        arguments = ["--csv", str(server.csv.with_name("scope.csv")), "--csr-csv", str(server.csv), "--dump", str(dump)]
        patch.setattr(litescope_cli, "RemoteClient", partial(RemoteClient, port=server.tcp_port))
        patch.setattr(sys, "argv", ["litescope_cli", *arguments, "-r", "port0_tx_valid", "--offset", "16"])
        run = threading.Thread(target=litescope_cli.main)
        run.start()
        with contextlib.closing(server.probe()) as probe:
            while not probe.registers.read("scope_trigger_enable"):
                time.sleep(0.01)
            probe.train(TrainProgram(100, 9, fill="prbs"), receive=0)
            run.join(60)
    shown = frames_of(dump)
    stamps, frames = truth.read_pcap(tmp_path / "wire.port0.out.pcap")
    assert len(shown) == 8
    assert [octets for _, octets in shown] == [frame + crc32(frame).to_bytes(4, "little") for frame in frames[:8]]
    assert [sample - shown[0][0] for sample, _ in shown] == [(stamp - stamps[0]) // 8 for stamp in stamps[:8]]
