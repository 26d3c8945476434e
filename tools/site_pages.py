# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Adds pages of host/'s modules and of docs/'s scripts to the site, and copies what pages link to.

A hook of MkDocs (mkdocs.yml). Pages are written for GitHub, so their links lead to files of the repository: those that
leave docs/ get a copy of the file under source/. Folders, which a site can't show, and the labs' answers lose the link.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import site_scripts
from links import FENCED, LINK, QUOTED
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
HOST = ROOT / "host"
OWN = [ROOT / "tools" / name for name in ("site.css", "iframe-worker.js")]  # What the theme lacks.
TREE = ROOT / "build" / "docs" / "liteprobe"  # Where mkdocstrings finds the package: it holds nothing but host.
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#")  # Links that are no files.
# A link, its target in group 2; or code, which has none.
LINKS = re.compile(f"{FENCED.pattern}|{QUOTED.pattern}|{LINK.pattern}", re.MULTILINE | re.DOTALL)
FRONTS = ("index.md", "README.md")  # Pages of folders.
FIRST = re.compile(r"# [^\n]*\n(.*?^```.*?^```$)", re.MULTILINE | re.DOTALL)  # Of the README, without its title.


def module_pages() -> Iterator[tuple[str, str]]:
    """Return the place on the site, and the text, of the page of each public module of host/."""
    for path in sorted(HOST.rglob("*.py")):
        parts = path.relative_to(HOST).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        if any(part.startswith("_") for part in parts) and not is_package:
            continue
        names = parts[:-1] if is_package else parts
        place = "/".join(("api", *parts[:-1], "index.md" if is_package else f"{parts[-1]}.md"))
        title = ".".join(("liteprobe.host", *names))
        yield place, f"---\ntitle: {names[-1] if names else 'liteprobe.host'}\n---\n\n::: {title}\n"


def place_of(path: Path) -> str | None:
    """Return where a file of the repository is on the site; of a folder, its front page; None: nowhere."""
    if site_scripts.ANSWERS in (path, *path.parents):
        return None
    if path.is_dir():
        return next((place_of(path / front) for front in FRONTS if (path / front).is_file()), None)
    if site_scripts.is_script(path):
        path = path.with_suffix(".md")
    is_page = path.is_relative_to(DOCS)
    return path.relative_to(DOCS).as_posix() if is_page else f"source/{path.relative_to(ROOT).as_posix()}"


def text_of(page: Path) -> str:
    """Return the Markdown of a file that has a page."""
    return site_scripts.markdown(page) if site_scripts.is_script(page) else page.read_text(encoding="utf-8")


def targets(page: Path) -> set[Path]:
    """Return the files of the repository that a page links to."""
    found = (link[2] for link in LINKS.finditer(text_of(page)) if link[2] and not ELSEWHERE.match(link[2]))
    paths = ((page.parent / target.partition("#")[0]).resolve() for target in found)
    return {path for path in paths if path.is_file() and path.is_relative_to(ROOT)}


def linked(pages: set[Path]) -> set[Path]:
    """Return the files outside docs/ that pages link to, and those that these link to."""
    seen: set[Path] = set()
    while pages:
        found = {path for page in pages for path in targets(page)} - seen
        seen |= found
        pages = {path for path in found if path.suffix == ".md"}
    return {path for path in seen if not path.is_relative_to(DOCS)}


def rewritten(text: str, page: Path, place: str) -> str:
    """Return a page's text with links that hold on the site; those that lead nowhere stay, for MkDocs to refuse."""

    def link(found: re.Match[str]) -> str:
        whole, to = found[0], found[2]
        if not to or ELSEWHERE.match(to):
            return whole
        path, hash_, anchor = to.partition("#")
        target = (page.parent / path).resolve()
        if not target.exists() or target == page:  # To itself: a script's page, to the script.
            return whole
        there = place_of(target)
        if there is None:
            return whole[1 : whole.rindex("](")]
        return whole.replace(f"({to}", f"({os.path.relpath(there, os.path.dirname(place))}{hash_}{anchor}")

    return LINKS.sub(link, text)


def fronted(markdown: str) -> str:
    """Return the front page with what the README says first, up to its first commands, above the map."""
    readme = ROOT / "README.md"
    said = FIRST.match(readme.read_text(encoding="utf-8"))
    if said is None:
        raise PluginError("README.md has no heading, and then a block of commands: what stands first on the site?")
    title, mark, rest = markdown.partition("\n## ")
    return f"{title}\n{rewritten(said[1], readme, 'index.md')}\n{mark}{rest}"


def script_files(config: MkDocsConfig) -> Iterator[File]:
    """Return the page of each script of docs/, and the notebook of each that has cells."""
    for path in site_scripts.scripts():
        place = str(place_of(path))
        yield File.generated(config, place, content=rewritten(text_of(path), path, place))
        if site_scripts.is_notebook(path):
            content = site_scripts.notebook(path)
            yield File.generated(config, place.removesuffix(".md") + ".ipynb", content=content)


# Hooks --------------------------------------------------------------------------------------------


def on_startup(**_: object) -> None:
    """Lay a package ``liteprobe`` before mkdocstrings looks for it."""
    TREE.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (TREE / HOST.name).symlink_to(HOST)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of modules and of scripts, what pages link to, and what the theme lacks."""
    for path in OWN:
        files.append(File.generated(config, path.name, abs_src_path=str(path)))
    for place, text in module_pages():
        files.append(File.generated(config, place, content=text))
    written = {DOCS / file.src_uri for file in files.documentation_pages() if file.generated_by is None}
    for file in script_files(config):
        files.append(file)
    for path in linked({*written, *site_scripts.scripts()}):
        files.append(File.generated(config, str(place_of(path)), abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the links of a page hold."""
    place = page.file.src_uri
    if page.file.abs_src_path is None:  # Made here: its links hold.
        return markdown
    source = ROOT / place.removeprefix("source/") if place.startswith("source/") else DOCS / place
    found = rewritten(markdown, source, place)
    if place != "index.md":
        return found
    page.meta["hide"] = ["navigation"]  # It would list this page alone.
    return fronted(found)
