# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the URL of a probe of what people type: an address, a device. The command line has it, too, which loads no link."""

import re

#: A host with a dot or a port, so that a word without a scheme isn't looked for on the network.
HOST = re.compile(r"(?i)(localhost(:\d+)?|[a-z0-9][a-z0-9.-]*(\.[a-z0-9-]+|:\d+)+)/?(\?.*)?")


def is_simulated(url: str) -> bool:
    """Return whether the probe of a URL is simulated: its time goes on only while something is asked of it, and slowly."""
    return url.startswith(("sim://", "sim10g://"))


def full_url(text: str) -> str:
    """Return the URL for an address like ``192.168.1.50``, or a device like ``/dev/ttyUSB0``; others as they are."""
    if "://" in text:
        return text
    if text.startswith("/dev/"):
        return f"{'pcie' if 'pcie' in text else 'uart'}://{text}"
    return f"etherbone://{text}" if HOST.fullmatch(text) else text
