# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``docs`` of the first hour: the site is built without a warning, and has each public name and each cell of a lab."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import site_check

from liteprobe.sim.drivers.tools.figures import Figure, note, row


@row("first-hour")
def test_docs(is_full: bool) -> Iterator[Figure]:
    """Build the site strictly and compare its names with those of host/; private names (``_name``) are left out."""
    del is_full
    with tempfile.TemporaryDirectory() as folder:
        site, started = Path(folder), time.monotonic()
        warnings = site_check.build(site)
        note(*warnings)
        yield Figure("docs_warnings", len(warnings), "warnings", 0)
        yield Figure("docs_build", time.monotonic() - started, "s", 120)
        yield Figure("docs_pages", len(list(site.rglob("*.html"))), "pages", 1, is_least=True)
        names = site_check.public_names()
        yield Figure("docs_names", len(names), "names", 1, is_least=True)
        missing = sorted(names - site_check.inventory(site))
        note(*missing)
        yield Figure("docs_names_without_a_page", len(missing), "names", 0)
        faults = site_check.site_lab_faults(site)
        note(*faults)
        yield Figure("docs_lab_pages", len(site_check.labs()), "pages", 8, is_least=True)
        yield Figure("docs_lab_faults", len(faults), "faults", 0)
