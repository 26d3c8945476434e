# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receive path of a port: mac -> stamp -> parse -> measure and capture."""

from liteprobe.cores.receive.management import ManagementReceive
from liteprobe.cores.receive.path import ReceivePath

__all__ = ["ManagementReceive", "ReceivePath"]
