# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A host takes and gives back a probe whatever moment an interrupt chooses."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.lease import HostLease
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers, load_map
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe


class CutLink(FakeLink):
    """A link on which an interrupt comes before or after the access of some number."""

    cut_at = -1
    is_after = False
    count = 0

    def _cut(self, is_after: bool) -> None:
        if self.count == self.cut_at and is_after == self.is_after:
            raise Interrupted

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        self.count += 1
        self._cut(is_after=False)
        found = super().read_scattered(addresses)
        self._cut(is_after=True)
        return found


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("steal", [False, True])
def test_a_lease_that_an_interrupt_cuts_short_is_this_hosts_all_the_same(
    tmp_path: Path, is_after: bool, steal: bool
) -> None:
    cuts = 0
    while True:
        link = CutLink(ModelProbe(), tmp_path)
        lease = HostLease(Registers(link, load_map(link.map_file)), steal)
        link.count, link.cut_at, link.is_after = 0, cuts + 1, is_after
        try:
            lease.ensure()
        except Interrupted:
            cuts += 1
        else:
            break
        if cuts % 2:  # What is measured after an interrupt is read, and then the probe is given back.
            lease.ensure()
            assert lease.is_held
        lease.release()
        assert (link.waits, link.model.values["probe_lease_owner"] >> 16) == ([], 0), cuts
    assert cuts >= 4


def test_a_host_that_was_refused_gives_back_nothing(tmp_path: Path) -> None:
    link = CutLink(ModelProbe(), tmp_path)
    first, second = (HostLease(Registers(link, load_map(link.map_file))) for _ in range(2))
    first.ensure()
    link.model.values["probe_lease_left"] = 20  # It is heard all the time.
    owner = link.model.values["probe_lease_owner"]
    link.cut_at, link.count, link.is_after = 1, 0, True
    with pytest.raises(Interrupted):
        second.ensure()
    second.release()
    assert link.model.values["probe_lease_owner"] == owner
