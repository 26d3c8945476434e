# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives signals the same names, and so the same Verilog and the same routing, whichever Python writes it.

Migen names a signal after the variable that takes it and the frames that lead there, as it reads them in bytecode. Python 3.12
runs comprehensions in the frame of their function (PEP 709) and 3.13 joins instructions: a build would have other names there,
and another result for the same seed. So the packages that make gateware are compiled with a generator in the place of each
comprehension, which has a frame still, and what was joined is read as the two instructions that it was.

Stands alone: it comes in before Migen does, and goes once no supported Python needs it.
"""

import ast
import sys
import warnings
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from opcode import opname

FIRST_TO_DIFFER = (3, 12)
PACKAGES = ("migen", "litex", "litedram", "liteeth", "litepcie", "liteprobe.boards", "liteprobe.cores", "liteprobe.soc")
TRACER = "migen.fhdl.tracer"
STORES_FIRST = ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST") # The upper half of their number is the first of the two.
LOADS_BOTH = ("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")


class Generators(ast.NodeTransformer):
    """Writes each comprehension as a generator that the type of an empty list, set or dict takes: a name could be another's."""
    def visit_ListComp(self, node):
        return self.taken_by("[]", node, node.elt)

    def visit_SetComp(self, node):
        return self.taken_by("{*()}", node, node.elt)

    def visit_DictComp(self, node):
        return self.taken_by("{}", node, ast.Tuple([node.key, node.value], ast.Load()))

    def taken_by(self, empty, node, element):
        """Return the call that stands for a comprehension of ``element``."""
        maker = ast.parse(f"{empty}.__class__", mode="eval").body
        call = ast.Call(maker, [ast.GeneratorExp(element, node.generators)], [])
        return self.generic_visit(ast.copy_location(call, node))


def compiled(source, path):
    """Return the code of a module with generators in place of comprehensions."""
    tree = Generators().visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class Loader(SourceFileLoader):
    """Compiles a module with generators; keeps no bytecode, which others would take."""
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning) # Of LiteX's sources.
            return compiled(self.get_data(path), path)

    def exec_module(self, module):
        super().exec_module(module)
        if module.__name__ == TRACER:
            module.get_var_name = get_var_name


class Finder(MetaPathFinder):
    """Finds the modules of `PACKAGES`."""
    def find_spec(self, fullname, path=None, target=None):
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(PACKAGES) else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def get_var_name(frame):
    """Return the variable that takes what a frame calls, or None; Migen's own reads no joined instructions."""
    from migen.fhdl import tracer

    code, at = frame.f_code, frame.f_lasti
    while at > 0 and opname[code.co_code[at]] == "CACHE":
        at -= 2
    while opname[code.co_code[at]] == "EXTENDED_ARG":
        at += 2
    if opname[code.co_code[at]] not in tracer._call_opcodes:
        return None
    while True:
        at += 2
        name, number = opname[code.co_code[at]], code.co_code[at + 1]
        if name in ("STORE_NAME", "STORE_ATTR"):
            return code.co_names[number]
        if name in ("STORE_FAST", "STORE_DEREF"):
            return (code.co_varnames + code.co_cellvars + code.co_freevars)[number] # As Migen counts.
        if name in STORES_FIRST:
            return code.co_varnames[number >> 4]
        if name not in tracer._load_build_opcodes and name not in LOADS_BOTH:
            return None


def install():
    """Let what is imported from now on name its signals as on Python 3.11; does nothing there, or when it was done before."""
    if sys.version_info >= FIRST_TO_DIFFER and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
        if TRACER in sys.modules:
            sys.modules[TRACER].get_var_name = get_var_name
