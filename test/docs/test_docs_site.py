# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The site: built without a warning, with each public name and each lab; what leads nowhere is a warning."""

import json
import re
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import griffe
import markdown
import pytest
import site_build
import yaml
from browser import PROGRAM, Browser
from pictures import REPORTS, SCREENS

ROOT = Path(__file__).resolve().parents[2]
SMALL = f"""
INHERIT: {ROOT}/mkdocs.yml
docs_dir: docs
hooks: []
plugins: !!python/object/apply:collections.OrderedDict []
"""


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of tools/ that make the site, and check it."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import site_check
    import site_pages

    yield site_check, site_pages
    for name in ("site_check", "site_pages", "site_scripts", "links"):
        sys.modules.pop(name, None)


def test_a_picture_of_the_gallery_is_made_by_the_command_above_it() -> None:
    """By tools/pictures.py, which runs it in a terminal, or photographs its report."""
    page = (ROOT / "docs/gallery.md").read_text()
    shown = re.findall(r"^```\n\./run liteprobe (.*)\n```\n\n!\[[^]]*\]\(images/(\S+)\.png\)", page, re.MULTILINE)
    made = {name: words for name, (_, _, words) in SCREENS.items()} | {
        name: words for name, (_, words) in REPORTS.items() if name != "report"
    }
    assert {name: words.replace('"', "'") for words, name in shown} == {
        name: words.replace('"', "'") for name, words in made.items()
    }


def test_answers_of_the_labs_are_on_no_page(tools: Any) -> None:
    """Their folder is left out, their scripts have no page, and links to them are none (below)."""
    config = yaml.unsafe_load((ROOT / "mkdocs.yml").read_text())
    assert config["exclude_docs"] == "labs/teacher/"
    assert [path for path in tools[1].site_scripts.scripts() if "teacher" in path.parts] == []


def test_what_leads_nowhere_is_a_warning_and_all_else_is_none(tools: Any, tmp_path: Path) -> None:
    """As mkdocs.yml has it, with no plugin: a link, an anchor here and on another page, an absolute link."""
    pages = {
        "index.md": "# One\n\n[a](two.md) [b](two.md#a-part-of_it) [c](#one)\n",
        "two.md": "# Two\n\n## A part of_it\n\n[a](gone.md) [b](index.md#gone) [c](#gone) [d](/gone.md)\n",
    }
    (tmp_path / "docs").mkdir()
    for name, text in pages.items():
        (tmp_path / "docs" / name).write_text(text)
    config = tmp_path / "mkdocs.yml"
    config.write_text(SMALL)
    found = tools[0].build(tmp_path / "site", "--config-file", str(config))
    targets = re.findall(r"'(\S*gone\S*)'", "\n".join(found))
    assert (len(found), set(targets)) == (4, {"gone.md", "/gone.md", "index.md#gone", "#gone"})
    assert all("two.md" in line for line in found)


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("[a](library.md#x)", "[a](library.md#x)"),
        ("[`a`](../host/probe.py)", "[`a`](source/host/probe.py)"),
        ("[a](../CONTRIBUTING.md#x)", "[a](source/CONTRIBUTING.md#x)"),
        ("[a](../host)", "a"),
        ("[a](examples)", "[a](examples/README.md)"),
        ("[a](labs/lab4_queues.py)", "[a](labs/lab4_queues.md)"),
        ("[a](labs/teacher/answers.md#x) [b](labs/teacher/check.py) [c](labs/teacher)", "a b c"),
        ("[a](examples/train.py) [b](examples/imix.yaml)", "[a](examples/train.md) [b](examples/imix.yaml)"),
        ("![a](images/report.png)", "![a](images/report.png)"),
        ("`[a](../host)` ![a](gone.png)", "`[a](../host)` ![a](gone.png)"),
        ("```\n[a](../host)\n```", "```\n[a](../host)\n```"),
        ("[a](https://example.org/x) [b](#x)", "[a](https://example.org/x) [b](#x)"),
    ],
)
def test_links_of_a_page_lead_to_the_same_on_the_site(tools: Any, link: str, there: str) -> None:
    assert tools[1].rewritten(link, ROOT / "docs" / "index.md", "index.md") == there


def test_links_of_pages_outside_docs_lead_back_into_it(tools: Any) -> None:
    text = tools[1].rewritten("[a](docs/time.md) [b](LICENSE)", ROOT / "README.md", "source/README.md")
    assert text == "[a](../time.md) [b](LICENSE)"


def test_the_front_page_says_first_what_the_readme_says_first(tools: Any) -> None:
    text = tools[1].fronted("# LiteProbe\n\nA tester.\n\n## Map\n\n[a](b.md)\n")
    places = [
        text.index(part) for part in ("A tester", "**Who**", "**Why**", "**Never measured", "./run demo", "## Map")
    ]
    assert places == sorted(places)
    assert "](hardware-status.md)" in text and "a report\n```" not in text.split("## Map")[1]


@pytest.mark.parametrize(("options", "faults"), [([], []), (["--serve"], []), ([], ["WARNING - a"])])
def test_the_end_says_where_the_site_is(
    options: list[str], faults: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(site_build.site_check, "build", lambda _: faults)
    monkeypatch.setattr(site_build.http.server.ThreadingHTTPServer, "serve_forever", stopped)
    assert site_build.main(options) == len(faults)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == faults
    lines = [line.split(": ")[1] for line in shown.out.splitlines() if line]
    wanted = [rf"{re.escape((ROOT / 'build/site/index.html').as_uri())}", r"http://127\.0\.0\.1:80\d\d/"]
    assert len(lines) == (not faults) * (1 + len(options))
    assert all(re.fullmatch(one, line) for one, line in zip(wanted, lines, strict=False))


def test_the_site_is_served_at_the_next_port_that_is_free(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("here")
    with site_build.server(range(18000, 18100), tmp_path) as first:
        port = first.server_port
        with site_build.server(range(port, port + 50), tmp_path) as pages:
            assert pages.server_port > port
            threading.Thread(target=pages.handle_request).start()
            assert urllib.request.urlopen(f"http://127.0.0.1:{pages.server_port}/").read() == b"here"
        with pytest.raises(OSError, match="name another: --serve PORT"):
            site_build.server(range(port, port + 1), tmp_path)


@pytest.fixture(scope="module")
def reader() -> markdown.Markdown:
    """Return what makes pages of Markdown, set as mkdocs.yml has it."""
    entries = yaml.unsafe_load((ROOT / "mkdocs.yml").read_text())["markdown_extensions"]
    return markdown.Markdown(
        extensions=list(entries), extension_configs={key: one or {} for key, one in entries.items()}
    )


def test_each_lab_has_a_page_with_its_headings_and_its_cells(tools: Any, reader: markdown.Markdown) -> None:
    check, pages = tools
    assert len(check.labs()) == 8
    for lab in check.labs():
        page = reader.reset().convert(pages.text_of(lab))
        assert check.lab_faults(lab, page) == []
        assert "SPDX" not in page
        assert f'<a class="md-button" download="{lab.name}" href="{lab.name}">' in page


@pytest.mark.parametrize(
    ("shown", "instead"),
    [("Step 3", "Step 4"), (">21</span>", ">1</span>"), ("<h2", "<h2 class='x'"), ("cell ", "")],
    ids=["another heading", "another figure in the code", "headings of another kind", "no cells"],
)
def test_what_a_page_lacks_of_a_lab_is_found(tools: Any, reader: markdown.Markdown, shown: str, instead: str) -> None:
    check, pages = tools
    lab = check.labs()[3]
    page = reader.reset().convert(pages.text_of(lab))
    assert shown in page
    assert len(check.lab_faults(lab, page.replace(shown, instead))) == 1


def test_the_notebook_of_a_lab_is_its_cells_without_their_output(tools: Any) -> None:
    check, pages = tools
    for lab in check.labs():
        book = json.loads(pages.site_scripts.notebook(lab))
        assert [cell["outputs"] for cell in book["cells"] if cell["cell_type"] == "code" and cell["outputs"]] == []
        kinds = [kind or "code" for kind, _ in check.CELL.findall(lab.read_text())]
        assert [cell["cell_type"] for cell in book["cells"]] == ["code", *kinds]  # The licence comes first.
        assert pages.site_scripts.notebook(lab) == pages.site_scripts.notebook(lab)


def test_links_of_a_lab_hold_in_the_repository(tools: Any) -> None:
    """Those of its Markdown cells, as GitHub and Jupyter follow them; the site's are those of the strict build."""
    check, pages = tools
    links = sys.modules["links"]
    found = [(lab, link[2]) for lab in check.labs() for link in pages.LINKS.finditer(pages.text_of(lab)) if link[2]]
    own = {name for lab in check.labs() for name in (lab.name, f"{lab.stem}.ipynb")}
    faults = [(lab.name, target, links.fault(lab, target)) for lab, target in found if target not in own]
    assert [fault for fault in faults if fault[2]] == []


def test_a_field_has_the_comments_above_and_beside_it_for_its_text(tools: Any, tmp_path: Path) -> None:
    fields = "    #: Octets,\n    #: without FCS.\n    length: int\n    count: int = 1  # Frames.\n    bare: int = 0\n"
    (tmp_path / "liteprobe_fields.py").write_text(
        f"from dataclasses import dataclass\n\n\n@dataclass\nclass Frames:\n{fields}"
    )
    extensions = griffe.load_extensions(str(ROOT / "tools" / "site_api.py"))
    frames = griffe.load("liteprobe_fields", search_paths=[tmp_path], extensions=extensions, allow_inspection=False)[
        "Frames"
    ]
    texts = {name: one.docstring and one.docstring.value for name, one in frames.attributes.items()}
    assert texts == {"length": "Octets, without FCS.", "count": "Frames.", "bare": None}


def test_each_public_module_of_the_library_has_a_page(tools: Any) -> None:
    check, pages = tools
    modules = {re.search(r"^::: (\S+)$", text, re.MULTILINE)[1] for _, text in pages.module_pages()}  # type: ignore[index]
    assert modules == {name for name in check.public_names() if is_module(name)}


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_every_page_of_docs_is_in_the_navigation() -> None:
    """By its patterns: a page that none takes would be a warning, too, but of a build that takes long."""
    entries = yaml.safe_load((ROOT / "docs" / ".nav.yml").read_text())["nav"]
    nested = [one for entry in entries if isinstance(entry, dict) for one in entry.values() if isinstance(one, list)]
    patterns = [one for one in [*entries, *(name for names in nested for name in names)] if isinstance(one, str)]
    assert {"*.md", "*/"} <= set(patterns)
    assert [one for one in patterns if "*" not in one and not (ROOT / "docs" / one).is_file()] == []


def test_a_list_begins_after_a_blank_line(tools: Any) -> None:
    """Without one GitHub shows a list all the same, and the site shows a paragraph."""
    faults = []
    check, pages = tools
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *check.labs()]:
        prose = re.sub(r"^(`{3,}).*?^\1$", "", pages.text_of(path), flags=re.MULTILINE | re.DOTALL)
        for block in re.split(r"\n\s*\n", prose):
            if re.match(r"(?:[-*] |\d+\. |[ |#])", block.lstrip("\n")):
                continue
            faults += [f"{path.name}: {line}" for line in re.findall(r"^(?:[-*]|1\.) .*$", block, re.MULTILINE)]
    assert faults == []


def pages_of_a_search(url: str) -> int:
    """Return how many pages a browser finds, all of them beside this one."""
    with Browser() as browser:
        browser.open(url, 1280)
        browser.wait("document.querySelector('.md-search-result__link') !== null")
        found: list[str] = browser.ask("[...document.querySelectorAll('.md-search-result__link')].map(one => one.href)")
    assert all(one.startswith(url.rpartition("/")[0]) for one in found)
    return len({one.partition("#")[0] for one in found})


@pytest.mark.full
def test_each_public_name_of_the_library_is_on_the_site(tools: Any, tmp_path: Path) -> None:
    """The whole site, in 15 s of processor time; `./run bench first-hour docs` does the same."""
    check = tools[0]
    assert check.build(tmp_path) == []
    assert sorted(check.public_names() - check.inventory(tmp_path)) == []
    assert check.site_lab_faults(tmp_path) == []
    assert {"liteprobe.host.probe.Probe.train", "liteprobe.host.packets.filter.fit"} <= check.inventory(tmp_path)
    assert not PROGRAM or pages_of_a_search(f"{(tmp_path / 'index.html').as_uri()}?q=netem") > 5
    assert (
        not list(tmp_path.rglob("teacher/*"))
        and "LengthCounter" not in (tmp_path / "search/search_index.json").read_text()
    )
    loaded = re.findall(r'(?:src=|<link[^>]*href=)"(?:https?:)?//[^"]*"', (tmp_path / "index.html").read_text())
    assert loaded == []  # Nothing comes from the web.
