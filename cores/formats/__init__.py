# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out all that leaves a probe or comes to it. No Migen, so that host, models and firmware share it.

A file a matter; all names are here.
"""

from liteprobe.cores.formats.clock import *
from liteprobe.cores.formats.measure import *
from liteprobe.cores.formats.monitor import *
from liteprobe.cores.formats.probe import *
from liteprobe.cores.formats.replay import *
from liteprobe.cores.formats.traffic import *
from liteprobe.cores.formats.wire import *
