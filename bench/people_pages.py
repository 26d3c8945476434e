# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``pages`` of the bench ``people``: pages of the site in a browser, wide and narrow, and its search."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import site_check
from browser import PROGRAM, Browser

from liteprobe.sim.drivers.tools.figures import Figure, note, row

PAGES = (
    "index",
    "first-train",
    "gallery",
    "compared",
    "first-bench",
    "questions",
    "labs/index",
)  # `--full`: all but the library's.
WIDTHS = (1280, 400)
#: What lies beside the window and isn't in something that scrolls by itself, and pictures that did not come.
FAULTS = """[...document.querySelectorAll('article *')].filter(one => {
    const box = one.getBoundingClientRect();
    if (one.tagName == 'IMG' && !one.naturalWidth) return true;
    if (!box.width || box.right <= WIDTH + 1) return false;
    for (let out = one; out.tagName != 'ARTICLE'; out = out.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(out).overflowX)) return false;
    return true;
}).map(one => one.outerHTML.slice(0, 100))"""
HITS = "[...document.querySelectorAll('.md-search-result__link')].map(one => one.href.split('#')[0])"


@row("people")
def test_pages(is_full: bool) -> Iterator[Figure]:
    """Build the site, open pages at 1280 and 400 pixels, and search it as files; without Chromium nothing is opened."""
    if PROGRAM is None:
        note("  excluded: all pages: no Chromium is here (apt-get install chromium)")
        return
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        site = Path(folder)
        warnings = site_check.build(site)
        note(*warnings)
        yield Figure("page_warnings", len(warnings), "warnings", 0)
        every = [path.relative_to(site).with_suffix("").as_posix() for path in sorted(site.rglob("*.html"))]
        left = [name for name in every if name.startswith("api/")]
        opened = [name for name in every if name not in left and name != "404"] if is_full else PAGES
        note(
            f"  excluded: {len(every) - len(opened)} of {len(every)} pages, {len(left)} of them of the library's modules"
        )
        faults = []
        for name in opened:
            for width in WIDTHS:
                browser.open((site / f"{name}.html").as_uri(), width)
                wide = browser.ask(f"document.documentElement.scrollWidth > {width}")
                faults += [
                    f"  {name} at {width}: {one}"
                    for one in ["it scrolls"] * wide + browser.ask(FAULTS.replace("WIDTH", f"{width}"))
                ]
        note(*faults)
        yield Figure("pages_opened", len(opened) * len(WIDTHS), "pages", 2 * len(PAGES), is_least=True)
        yield Figure("pages_with_what_does_not_fit", len({one.split(":")[0] for one in faults}), "pages", 0)
        browser.open(f"{(site / 'index.html').as_uri()}?q=netem", WIDTHS[0])
        browser.wait("document.querySelector('.md-search-result__link') !== null")
        yield Figure("pages_found_of_files", len(set(browser.ask(HITS))), "pages", 5, is_least=True)
