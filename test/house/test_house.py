# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The rules of the house: imports run downwards, ports are documented, what is never committed."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

FOLDERS = ("cores", "soc", "boards", "host", "sim")
GATEWARE = ("cores", "soc", "boards")
HDL = ("migen", "litex", "liteeth", "litedram", "litescope", "litex_boards")

# Downwards only: what each folder may take from liteprobe.
MAY_IMPORT = {
    "cores/": ("cores",),
    "boards/": ("boards", "cores"),
    "soc/": ("soc", "cores", "boards"),
    "host/": ("host", "cores.formats"),
    "sim/models/": ("sim.models", "cores.formats", "host.traffic.stream"),  # What is asked for, as data.
    "sim/": ("sim", "soc", "boards", "cores", "host"),
}

PARAMETERS = 7


@cache
def tracked(*patterns: str) -> list[str]:
    """Return the files of the repository, as paths from its top, that match ``patterns``."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


@cache
def tree_of(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), path)


@cache
def imports_of(path: str) -> frozenset[str]:
    """Return the dotted names of the modules that a file imports, in functions too; relative ones start with a dot."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= (
                {f"{module}.{alias.name}" for alias in node.names}
                if module in ("liteprobe", "liteprobe.cores")
                else {module}
            )
    return frozenset(found)


def is_within(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def functions_of(path: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


# Imports ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_downwards_only(folder: str) -> None:
    """The gateware is the ground: soc and host stand on it, sim on top; no folder knows what stands on it."""
    faults = [
        f"{path} imports {module}"
        for path in tracked(f"{folder}*.py")
        for module in sorted(imports_of(path))
        if is_within(module, ("liteprobe",))
        and not is_within(module.removeprefix("liteprobe."), MAY_IMPORT[folder])
        and not (module.removeprefix("liteprobe.") == "cores" and "cores" in MAY_IMPORT[folder])
    ]
    assert faults == []


@pytest.mark.parametrize("folder", ["host", "sim/models", "cores/formats"])
def test_plain_python_never_imports_the_hdl(folder: str) -> None:
    paths = [path for path in tracked(folder) if path.endswith(".py")]
    faults = [f"{path} imports {name}" for path in paths for name in sorted(imports_of(path)) if is_within(name, HDL)]
    assert faults == []


def test_imports_are_absolute_and_go_through_liteprobe() -> None:
    faults = [
        f"{path} imports {name}"
        for path in tracked("*.py")
        for name in sorted(imports_of(path))
        if name.startswith(".") or is_within(name, FOLDERS)
    ]
    assert faults == []


# Size and shape -----------------------------------------------------------------------------------


def test_functions_take_seven_parameters_or_one_dataclass() -> None:
    faults = []
    for path in tracked("*.py"):
        for function in functions_of(path):
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            if len([argument for argument in arguments if argument.arg not in ("self", "cls")]) > PARAMETERS:
                faults.append(f"{path}:{function.lineno} {function.name}")
    assert faults == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    nothing = {"utils", "util", "misc", "helpers", "helper", "manager", "common"}
    assert [path for path in tracked() if Path(path).stem in nothing or nothing & set(Path(path).parts[:-1])] == []


# One idea, one file --------------------------------------------------------------------------------

PRODUCT = ("cores", "soc", "boards", "host")
SMALL = 120  # Lines.
ALONE = (
    "Stands alone:"  # Begins the sentence of a docstring that says why a small file isn't merged into its only user.
)


def product() -> list[str]:
    return tracked(*(f"{folder}/*.py" for folder in PRODUCT))


def module_name(path: str) -> str:
    return "liteprobe." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def product_imports() -> dict[str, set[str]]:
    """Return the files of the product that each file of it imports, the ``__init__`` of their folders left out."""
    paths = {module_name(path): path for path in product()}
    found: dict[str, set[str]] = {}
    for path in product():
        found[path] = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in [f"{node.module}.{alias.name}" for alias in node.names]:
                    taken = paths.get(name) or paths.get(node.module)
                    found[path] |= {taken} - {path, None} if taken else set()
    return found


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return the sets of nodes that import each other in a loop."""
    try:
        list(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        return [error.args[1]]
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles(product_imports()) == []


@pytest.mark.parametrize("house", ["host"])
def test_no_folders_import_each_other_in_a_circle(house: str) -> None:
    """The folders right below a house, and the files beside them."""

    def place(path: str) -> str:
        return "/".join(path.split("/")[:2])

    arrows: dict[str, set[str]] = {}
    for path, taken in product_imports().items():
        if path.startswith(f"{house}/") and not path.endswith("__init__.py"):
            others = {place(other) for other in taken if other.startswith(f"{house}/")}
            arrows.setdefault(place(path), set()).update(others - {place(path)})
    assert circles(arrows) == []


def test_no_package_is_imported_by_what_stands_in_it() -> None:
    """An ``__init__`` with code of its own that a file of its folder takes from is an arrow up."""
    faults = [
        f"{path} imports {taken}"
        for path, others in product_imports().items()
        for taken in others
        if taken.endswith("/__init__.py") and path.startswith(taken.removesuffix("__init__.py"))
    ]
    assert faults == []


def attributes_of(tree: ast.Module) -> set[str]:
    """Return the attributes that the classes of a file give themselves."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            own.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            own |= {
                field.target.id
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            }
    return own


def imported_names() -> set[str]:
    """Return the names that some file of the product takes from another."""
    nodes = (node for path in product() for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in nodes if (node.module or "").startswith("liteprobe") for alias in node.names}


#: Migen names signals by its module ``tracer``, which can't be given another function but when it is loaded.
PATCHES = ("soc/same_names.py exec_module: module.get_var_name",)


def filled_from_outside(path: str, imported: set[str]) -> Iterator[str]:
    """Yield each statement that gives an attribute to a parameter whose class stands in another file.

    Also what adds logic to it: ``other.comb += ...``. Signals of it that are driven (``x.eq(other.y)``) don't count, nor do
    functions that only their own file calls, with what it made.
    """
    tree = tree_of(path)
    own = attributes_of(tree)
    private = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} - imported
    for function in functions_of(path):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        others = {argument.arg for argument in arguments} - {"self", "cls"}
        for node in ast.walk(function) if function.name not in private else ():
            is_given = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr not in own
            if is_given and isinstance(node.value, ast.Name) and node.value.id in others:
                yield f"{path} {function.name}: {ast.unparse(node)}"


def test_no_class_is_completed_from_another_file() -> None:
    imported = imported_names()
    assert [fault for path in product() for fault in filled_from_outside(path, imported) if fault not in PATCHES] == []


def test_small_files_with_one_user_say_why_they_stand_alone() -> None:
    users: dict[str, set[str]] = {}
    for path, taken in product_imports().items():
        for other in taken:
            users.setdefault(other, set()).add(path)
    faults = [
        f"{path}: only {next(iter(users[path]))} imports it"
        for path in product()
        if len(users.get(path, ())) == 1 and not path.endswith("__init__.py")
        if len((ROOT / path).read_text().splitlines()) < SMALL
        if ALONE not in (ast.get_docstring(tree_of(path)) or "")
    ]
    assert faults == []


def test_no_class_of_the_product_has_the_name_of_another() -> None:
    places: dict[str, list[str]] = {}
    for path in product():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# Ports and docstrings -----------------------------------------------------------------------------


def is_module(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id in ("LiteXModule", "Module") for base in node.bases)


def ports_of(node: ast.ClassDef, source: list[str]) -> list[str]:
    """Return the public signals and endpoints that ``__init__`` gives a module before its ``# # #``."""
    found = []
    for function in node.body:
        if not (isinstance(function, ast.FunctionDef) and function.name == "__init__"):
            continue
        lines = range(function.lineno, (function.end_lineno or 0) + 1)
        end = next((line for line in lines if source[line - 1].strip() == "# # #"), lines[-1] + 1)
        for statement in ast.walk(function):
            if not (
                isinstance(statement, ast.Assign) and statement.lineno < end and isinstance(statement.value, ast.Call)
            ):
                continue
            callee = statement.value.func
            kind = callee.id if isinstance(callee, ast.Name) else getattr(callee, "attr", "")
            if kind in ("Signal", "Endpoint", "Record", "Array"):
                targets = [target for target in statement.targets if isinstance(target, ast.Attribute)]
                found += [target.attr for target in targets if not target.attr.startswith("_")]
    return found


def modules_of(path: str) -> list[tuple[ast.ClassDef, list[str]]]:
    source = (ROOT / path).read_text().splitlines()
    classes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef) and is_module(node)]
    return [(node, ports_of(node, source)) for node in classes]


def test_each_port_of_a_core_is_named_in_its_docstring() -> None:
    faults = []
    for path in tracked("cores/*.py"):
        for node, ports in modules_of(path):
            words = set(re.findall(r"\w+", ast.get_docstring(node) or ""))
            faults += [f"{path}: {node.name}.{port}" for port in ports if port not in words]
    assert faults == []


def test_the_ports_of_the_cores_are_found_at_all() -> None:
    """The test above would be content with an empty list."""
    ports = {port for path in tracked("cores/*.py") for _, found in modules_of(path) for port in found}
    assert {"sink", "source", "now"} <= ports


def test_public_things_have_a_docstring() -> None:
    faults = []
    for path in tracked(*(f"{folder}/*.py" for folder in (*FOLDERS, "bench", "tools"))):
        if Path(path).name == "__init__.py" or Path(path).name.startswith(("test_", "conftest")):
            continue
        tree = tree_of(path)
        named = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        faults += [f"{path}: {node.name}" for node in named if node.name[0] != "_" and not ast.get_docstring(node)]
        faults += [] if ast.get_docstring(tree) else [f"{path}: the module"]
    assert faults == []


# What is never committed --------------------------------------------------------------------------


def texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        try:
            yield path, (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue


def test_no_path_of_a_machine_is_committed() -> None:
    pattern = re.compile(r"(?<![A-Za-z0-9_.~$}<])/(?:work|farm|root|home)/")
    faults = [
        f"{path}:{number}"
        for path, text in texts()
        if path != "test/house/test_house.py"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert faults == []


def test_no_check_is_silenced_in_a_line() -> None:
    """A rule that doesn't fit is changed in pyproject.toml, for all."""
    pattern = re.compile(r"#\s*(?:ruff:\s*)?" + "no" + "qa", re.IGNORECASE)
    assert [path for path, text in texts() if path.endswith(".py") and pattern.search(text)] == []


def test_each_source_says_its_licence_first() -> None:
    faults = []
    for path in tracked("*.py", "*.cpp", "*.h", "*.c", "*.sh", "run", ".ci/run", "tools/bare_machine"):
        text = (ROOT / path).read_text()
        head = text.removeprefix("#!/usr/bin/env bash\n").removeprefix("#!/usr/bin/env python3\n").splitlines()[:2]
        wanted = ["This file is part of LiteProbe.", "SPDX-License-Identifier: BSD-2-Clause"]
        wanted = wanted[::-1] if path.startswith("firmware/") else wanted  # Zephyr's tools look into the first line.
        if text and [line.lstrip("#/* ").rstrip("*/ ") for line in head] != wanted:
            faults.append(path)
    assert faults == []


def test_firmware_keeps_to_zephyr_s_width() -> None:
    """C of Zephyr has 100 columns, a tab being eight."""
    faults = [
        f"{path}:{number}"
        for path in tracked("firmware/*.c", "firmware/*.h")
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if len(line.expandtabs(8)) > 100
    ]
    assert faults == []


def test_no_large_file_is_committed() -> None:
    assert [path for path in tracked() if (ROOT / path).stat().st_size > 300_000] == []


# Packaging ----------------------------------------------------------------------------------------


def test_importable_folders_have_an_init_and_test_folders_have_none() -> None:
    files = [Path(path) for path in tracked(*(f"{folder}/*.py" for folder in (*FOLDERS, "test")))]
    folders = {path.parent for path in files}
    importable = {path.parent for path in files if not path.name.startswith(("test_", "cocotb_", "conftest."))}
    with_init = {folder for folder in folders if (ROOT / folder / "__init__.py").exists()}
    assert with_init == importable


def test_a_folder_of_tests_holds_fifteen_files_at_most() -> None:
    """A newcomer finds the tests of an area by its folder."""
    paths = [Path(path) for path in tracked("test/*.py", "sim/*.py")]
    count = Counter(str(path.parent) for path in paths if path.name.startswith("test_"))
    assert {folder: files for folder, files in count.items() if files > 15} == {}


def ranges() -> list[Requirement]:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    asked = [Requirement(text) for group in groups for text in group]
    return [requirement for requirement in asked if requirement.name != PROJECT["name"]]  # An extra that has another.


def test_each_dependency_is_a_range_that_the_lock_is_in() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line[:1].isalpha()]
    locked = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    outside = [str(asked) for asked in ranges() if locked.get(canonicalize_name(asked.name), "") not in asked.specifier]
    pinned = [str(asked) for asked in ranges() if "==" in str(asked.specifier)]
    assert (outside, pinned) == ([], [])
    assert {str(pin.specifier)[:2] for pin in pins} == {"=="}


def test_each_dependency_says_why_it_is_there() -> None:
    source = (ROOT / "pyproject.toml").read_text().splitlines()
    lines = [line for line in source if re.match(r'\s+"[\w-]+>=', line)]
    assert len(lines) == len(ranges())
    assert [line for line in lines if "#" not in line] == []
