# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs LiteX's server before a simulated probe: ``python -m liteprobe.sim.system.litex_server sim://loopback [--bind-port N]``.

Stands alone: a board needs ``litex_server --udp`` and nothing of this. LiteX's server takes answers at the port number that it
sends to, on each address of its machine; a simulated probe is on the same machine, and has that port already.
"""

import sys

from litex.tools import litex_server
from litex.tools.remote import comm_udp

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_options


class CommUDP(comm_udp.CommUDP):
    """LiteX's link by UDP, which takes answers at any free port."""

    def open(self, probe: bool = True) -> None:
        """Bind to a free port, and ask the probe whether it is there."""
        remote, self.port = self.port, 0
        super().open(probe=False)
        self.port = remote
        if probe:
            self.probe(self.server, self.port)


def main() -> int:
    """Start a simulated probe and LiteX's server, and serve until Ctrl-C."""
    url, *options = sys.argv[1:] or ["sim://loopback"]
    try:
        link = SimLink(sim_options(url))
    except ProbeError as error:
        print(f"litex_server: {error}", file=sys.stderr)
        return error.exit_code
    print(f"litex_cli --csr-csv {link.map_file.with_suffix('.csv')} --ident --regs")
    print(f"liteprobe info --probe etherbone://127.0.0.1:{link.port} --map {link.map_file}", flush=True)
    comm_udp.CommUDP = CommUDP
    sys.argv[1:] = ["--udp", "--udp-ip", "127.0.0.1", "--udp-port", str(link.port), *options]
    try:
        litex_server.main()
    finally:
        link.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
