# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a probe a resource of labgrid: exported by its URL, bound by a driver that holds it while it is active."""

from typing import ClassVar

import attr
from labgrid import target_factory
from labgrid.driver.common import Driver
from labgrid.resource.common import Resource

from liteprobe.host import Probe


@target_factory.reg_resource
@attr.s(eq=False)
class LiteProbe(Resource):
    """Says where a probe is.

    ``url``: as ``--probe`` takes it; from the client, the exporter only tells it. ``map``: register map; empty: found by the probe.
    """

    url = attr.ib(validator=attr.validators.instance_of(str))
    map = attr.ib(default="", validator=attr.validators.instance_of(str))


@target_factory.reg_driver
@attr.s(eq=False)
class LiteProbeDriver(Driver):
    """Opens the probe when it is activated, with its lease, and lets go of it when it is deactivated."""

    bindings: ClassVar = {"tester": LiteProbe}

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._probe: Probe | None = None

    def on_activate(self) -> None:
        """Open the probe; raises ProbeError where it doesn't answer, BusyError where a host without labgrid has it."""
        self._probe = Probe(self.tester.url, self.tester.map or None)

    def on_deactivate(self) -> None:
        """Let go of the probe."""
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    @Driver.check_active
    def get_probe(self) -> Probe:
        """Return the open probe."""
        assert self._probe is not None
        return self._probe
