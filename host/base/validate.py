# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the arguments that a script gives: of the type that is declared, numpy's numbers and numbers with units, or UsageError.

The declaration is the signature: ``validated`` reads the annotations of a function, of the public methods of a class, and of a
dataclass's fields, once. The end of a name says the unit (``interval_ns``, ``duration_s``, ``rate_bps``); a field with keys of
documents has the unit and the range of its kind. Ranges are checked where they are declared, by ``check_fields``.
"""

import ast
import collections.abc
import enum
import functools
import importlib
import inspect
import math
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

from liteprobe.host.base.errors import RangeError
from liteprobe.host.base.units import DURATIONS, PACKET_RATES, PER_CENT, RATES, TIMES, Factors, exact, quantity

T = TypeVar("T")

SHOWN = 60  # Characters of a value in a message.
BITS_MOST = 128  # Of a whole number: those of an IPv6 address.
SECONDS: Factors = {unit: Fraction(size, TIMES["s"]) for unit, size in DURATIONS.items()}
#: By the end of a name: the unit, and those that a text may have.
UNITS: dict[str, tuple[str, Factors]] = {
    "ns": ("in ns, or with a unit like '1.5us'", {"": 1, **TIMES}),
    "s": ("in s, or with a unit like '10ms'", {"": 1, **SECONDS}),
    "seconds": ("in s, or with a unit like '10ms'", {"": 1, **SECONDS}),
    "bps": ("in b/s, or with a unit like '10Mb/s'", {"": 1, **RATES}),
    "pps": ("in frames a second, or like '20k'", PACKET_RATES),
    "share": ("a share, 0 to 1, or like '12.5%'", {"": 1, **PER_CENT}),
}  # fmt: skip
#: Every callable that checks its arguments, by its qualified name.
PUBLIC: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Between:
    """The range of a number, written beside its type: ``Annotated[float, Between(0, 1)]``."""

    least: float
    most: float = math.inf
    is_above: bool = False  # The least itself is not in it.

    @property
    def written(self) -> str:
        """Say it for a message."""
        if self.most == math.inf:
            return f"above {self.least:g}" if self.is_above else f"{self.least} or more"
        return f"{'above ' * self.is_above}{self.least} to {self.most}"

    def has(self, value: Any) -> bool:
        """Return whether a number lies in it."""
        return bool(self.least <= value <= self.most and not (self.is_above and value == self.least))


Seconds = Annotated[float, Between(0, 10**9)]
Rate = Annotated[float, Between(0, is_above=True)]
Share = Annotated[float, Between(0, 1)]
Percent = Annotated[float, Between(0, 100)]
Length = Annotated[int, Between(1, 2**14 - 1)]
Increment = Annotated[int, Between(1, 2**64 - 1)]
TickIncrement = Increment | Fraction  # Of a tick of a program, of which a tick of the clock may have several.


class _No(Exception):
    """A value is not of a kind; the text is what to give, where it isn't what the kind says."""


@dataclass(frozen=True)
class Taken:
    """A kind of arguments: what to give, and what makes the plain value of one, or raises ``_No``."""

    what: str
    take: Callable[[Any], Any]


def validated(made: T) -> T:
    """Return a function, or a class whose public methods and ``__init__``, check their arguments as the module says."""
    if not isinstance(made, type):
        return typing.cast(T, _checking(typing.cast(Callable[..., Any], made)))
    for name, member in list(vars(made).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(made, name, type(member)(_checking(member.__func__)))
        elif inspect.isfunction(member):
            setattr(made, name, _checking(member, made if name == "__init__" else None))
    return made


def refuse(name: str, value: Any, what: str) -> RangeError:
    """Return the error of an argument that can't be taken: its name, value and type, and what to give."""
    return RangeError(f"{name} is {shown(value)} ({type(value).__name__}): give {what}", name)


def in_unit(name: str, value: object, unit: str, example: str) -> Fraction | None:
    """Return a quantity that is given as text with its unit, exact, in that of a key of `UNITS`; None stays None.

    Raises RangeError where it is a bare number: it would say no unit.

    >>> in_unit("rate", "333.333Mbit", "bps", "500Mbit")
    Fraction(333333000, 1)
    """
    if value is None:
        return None
    factors = {word: factor for word, factor in UNITS[unit][1].items() if word}
    found = quantity(value, factors) if isinstance(value, str) else None
    if found is None:
        raise refuse(name, value, f"a text with its unit, like '{example}', or {name}_{unit}")
    return found


def shown(value: Any) -> str:
    """Return a value for a message, short whatever it is."""
    try:
        text = ascii(value) if isinstance(value, str) else repr(value)
    except Exception:  # A whole number of thousands of digits, a value of others whose repr fails.
        text = "a value that can't be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


# # #


def _checking(function: Callable[..., Any], cls: type | None = None) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters.values()
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    others = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), "")
    options = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), "")
    kinds: dict[str, Taken] | None = None
    first: list[tuple[str, Taken | None]] = []

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        nonlocal kinds, first
        if kinds is None:
            found = kinds_of(function, cls)
            first, kinds = [(name, found.get(name)) for name in names], found
        plain = [
            value if kind is None else _taken(kind, name, value)
            for (name, kind), value in zip(first, args, strict=False)
        ]
        if len(args) > len(plain):
            kind = kinds.get(others)
            plain += [value if kind is None else _taken(kind, others, value) for value in args[len(plain) :]]
        by_name = given and {
            name: _taken(kinds.get(name) or kinds.get(options, _ANY), name, one) for name, one in given.items()
        }
        if len(args) + len(given) > 1 and any(hasattr(one, "dtype") for one in (*plain, *by_name.values())):
            _check_together(dict(zip(names, plain, strict=False)) | by_name)
        return function(*plain, **by_name)

    PUBLIC[f"{function.__module__.removeprefix('liteprobe.host.')}.{function.__qualname__}"] = call
    return call


def _check_together(given: Mapping[str, Any]) -> None:
    """Raise RangeError where arrays of one call are not of one length: they are columns of one table."""
    lengths = {name: len(one) for name, one in given.items() if hasattr(one, "dtype") and getattr(one, "ndim", 0) == 1}
    for name, length in lengths.items():
        if length != (first := next(iter(lengths.values()))):
            raise RangeError(f"{name} has {length} items, {next(iter(lengths))} {first}: give as many of each", name)


def _taken(kind: Taken, name: str, value: Any) -> Any:
    try:
        return kind.take(value)
    except _No as no:
        where, _, what = str(no).rpartition("\0")
        if where:
            path, inner = where.split("\1")
            raise RangeError(f"{name}{path} is {inner}: give {what}", name) from None
        raise refuse(name, value, what or kind.what) from None


def kinds_of(function: Callable[..., Any], cls: type | None = None) -> dict[str, Taken]:
    """Return the kinds of a function's arguments by name; ``cls``: the dataclass whose ``__init__`` it is."""
    of_fields = {one.name: one.metadata.get("keys", {}) for one in fields(cls)} if cls and is_dataclass(cls) else {}
    found = {}
    for name, one in inspect.signature(function).parameters.items():
        if one.annotation is inspect.Parameter.empty:
            continue
        scope = sys.modules[cls.__module__].__dict__ if cls else inspect.unwrap(function).__globals__
        hint = _evaluated(one.annotation, scope)
        unit = UNITS.get(name.rpartition("_")[2])
        for key in list(of_fields.get(name, {}).values())[:1]:
            unit = key.kind.written, {**(unit[1] if unit else {"": 1}), **_units_of(key.kind)}
        found[name] = _kind(hint, unit)
    return found


def _units_of(kind: Any) -> Mapping[str, Any]:
    """Return the units of a kind of documents, or of the first of its parts that has some."""
    if hasattr(kind, "units"):
        return typing.cast(Mapping[str, Any], kind.units)
    parts = (getattr(kind, name, None) for name in ("kind", "plain", "other", "mapping"))
    return next((found for part in parts if part is not None and (found := _units_of(part))), {})


class _Names(dict[str, Any]):
    """Names of a module, those that it imports for type checkers alone among them, which are loaded when they are needed."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        super().__init__(scope)

    def __missing__(self, name: str) -> Any:
        for node in _typed_imports(self["__name__"]):
            if name in (one.asname or one.name for one in node.names):
                return getattr(importlib.import_module(str(node.module)), name)
        raise KeyError(name)


@functools.cache
def _typed_imports(module: str) -> list[ast.ImportFrom]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    blocks = [one.body for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    return [one for body in blocks for one in body if isinstance(one, ast.ImportFrom)]


def _evaluated(hint: Any, scope: Mapping[str, Any]) -> Any:
    return eval(hint, {}, _Names(scope)) if isinstance(hint, str) else hint


# Kinds by annotation -----------------------------------------------------------------------------------


def _kind(hint: Any, unit: tuple[str, Factors] | None = None, may_be_text: bool = True) -> Taken:
    """Return the kind of an annotation; ``unit``: of its numbers; ``may_be_text``: numbers may be given as text."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _within(_kind(args[0], unit, may_be_text), args[1])
    if origin is typing.Literal:
        return Taken(" or ".join(map(repr, args)), lambda value: _literal(value, args))
    if origin in (typing.Union, types.UnionType):
        if "_SupportsArray" in str(hint):  # numpy's ArrayLike: what takes it makes an array of it.
            return _ANY
        has_text = str in args or any(typing.get_origin(one) is typing.Literal for one in args)
        arms = [_kind(one, unit, may_be_text and not has_text) for one in args]
        if Fraction in args:  # Of text, exact; a float is kept as it is.
            arms = [_number(False, unit, False) if one is float else arm for one, arm in zip(args, arms, strict=True)]
        return _union([_PATH_TEXT if arm is _PLAIN[str] and Path in args else arm for arm in arms])
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint in (int, float):
        return _number(hint is int, unit, may_be_text)
    if hint is Fraction:
        number = _number(False, unit, may_be_text)
        return Taken(number.what, lambda value: _exact(value, number, unit))
    if origin is tuple and (len(args) != 2 or args[1] is not Ellipsis):
        return _tuple([_kind(one, unit) for one in args])
    base = origin or hint
    if base in (tuple, list, collections.abc.Sequence):
        return _sequence(_kind(args[0], unit) if args else _ANY, as_tuple=base is tuple)
    if base is collections.abc.Mapping or base is dict:
        key, value = (_kind(args[0]), _kind(args[1], unit)) if args else (_ANY, _ANY)
        return Taken(f"a dictionary, of {key.what} to {value.what}", lambda given: _mapping(given, key, value))
    if base in (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Collection):
        one = _kind(args[0], unit) if args else _ANY
        return Taken(f"several, each {one.what}", lambda value: _iterable(value, one))
    if base is collections.abc.Callable:
        return Taken("a function", lambda value: _held(value, callable(value)))
    if getattr(base, "__module__", "").startswith("numpy") and base.__name__ == "ndarray":
        return _array(args)
    if isinstance(base, type):
        return _object(base)
    return _ANY


_ANY = Taken("anything", lambda value: value)


def _within(kind: Taken, between: Between) -> Taken:
    def take(value: Any) -> Any:
        return _held(found := kind.take(value), between.has(found))

    return Taken(f"{kind.what}, {between.written}", take)


def _held(value: Any, is_right: bool) -> Any:
    if not is_right:
        raise _No
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _No
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _No("\0text that UTF-8 can write, without lone surrogates") from None
    return str(value)


def _path(value: Any) -> Path:
    return Path(_held(value, isinstance(value, str | Path) and bool(str(value)) and "\0" not in str(value)))


def _path_text(value: Any) -> str:
    return str(_held(value, isinstance(value, str) and bool(value) and "\0" not in value))


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return bool(_held(value, type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_")))


_PLAIN: dict[Any, Taken] = {
    Any: _ANY,
    object: _ANY,
    types.NoneType: Taken("None", lambda value: _held(value, value is None)),
    str: Taken("text", _text),
    Path: Taken("a path", _path),
    bool: Taken("True or False", _flag),
    bytes: Taken("bytes", lambda value: _held(value, isinstance(value, bytes))),
}


_PATH_TEXT = Taken("a path as text", _path_text)


def _literal(value: Any, words: Sequence[Any]) -> Any:
    return _held(value, any(type(value) is type(word) and value == word for word in words))


def _number(is_whole: bool, unit: tuple[str, Factors] | None, may_be_text: bool) -> Taken:
    what = ("a whole number" if is_whole else "a finite number") + (f", {unit[0]}" if unit else "")
    factors = unit[1] if unit else {"": 1}

    def take(value: Any) -> Any:
        if type(value) is int and -(1 << BITS_MOST) < value < 1 << BITS_MOST:
            return value  # As it mostly is.
        if isinstance(value, str):
            found = quantity(value, factors) if may_be_text else None
            if found is None or (is_whole and found.denominator != 1) or abs(found) >= 1 << BITS_MOST:
                raise _No
            value = int(found) if found.denominator == 1 else float(found)
        is_number = isinstance(value, numbers.Integral) or (not is_whole and isinstance(value, numbers.Real))
        if not is_number or isinstance(value, bool) or type(value).__name__ == "timedelta64":
            raise _No  # A time of numpy is a whole number to it.
        value = value if type(value) in (int, float) or isinstance(value, Fraction) else _item(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise _No
        if not isinstance(value, float) and not -(1 << BITS_MOST) < value < 1 << BITS_MOST:
            raise _No(f"\0{what} of {BITS_MOST} bits at most")
        return value

    return Taken(what, take)


def _exact(value: Any, number: Taken, unit: tuple[str, Factors] | None) -> Fraction:
    found = quantity(value, unit[1] if unit else {"": 1}) if isinstance(value, str) else None
    return exact(number.take(value if found is None else found))


def _item(value: Any) -> int | float:
    """Return a number of numpy as Python's own."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _union(arms: Sequence[Taken]) -> Taken:
    words = [arm.what for arm in arms]
    words = [
        one
        for one in words
        if one.replace("a whole", "a finite") == one or one.replace("a whole", "a finite") not in words
    ]
    what = " or ".join(dict.fromkeys(words))

    def take(value: Any) -> Any:
        said = ""
        for arm in arms:
            try:
                return arm.take(value)
            except _No as no:
                said = said or str(no)
        raise _No(said)

    return Taken(what, take)


def _inner(kind: Taken, value: Any, place: str) -> Any:
    """Return a part of a value; what is wrong with it is said with its place."""
    try:
        return kind.take(value)
    except _No as no:
        where, _, what = str(no).rpartition("\0")
        path, _, inner = where.partition("\1")
        inner = inner or f"{shown(value)} ({type(value).__name__})"
        raise _No(f"{place}{path}\1{inner}\0{what or kind.what}") from None


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, str | bytes | bytearray | memoryview) or not (
        isinstance(value, Sequence) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1)
    ):
        raise _No
    return typing.cast(Sequence[Any], value)


def _sequence(kind: Taken, as_tuple: bool) -> Taken:
    def take(value: Any) -> Any:
        found = [_inner(kind, one, f"[{place}]") for place, one in enumerate(_items(value))]
        return found if isinstance(value, list) and not as_tuple else tuple(found)

    return Taken(f"a list, each {kind.what}", take)


def _tuple(kinds: Sequence[Taken]) -> Taken:
    def take(value: Any) -> Any:
        _held(value, len(_items(value)) == len(kinds))
        return tuple(
            _inner(kind, one, f"[{place}]") for place, (kind, one) in enumerate(zip(kinds, value, strict=True))
        )

    return Taken(f"({', '.join(kind.what for kind in kinds)})", take)


def _mapping(value: Any, key: Taken, kind: Taken) -> Any:
    _held(value, isinstance(value, Mapping))
    return {_inner(key, name, "'s key"): _inner(kind, one, f"[{shown(name)}]") for name, one in value.items()}


def _iterable(value: Any, kind: Taken) -> Any:
    _held(value, isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping))
    _held(value, getattr(value, "ndim", 1) > 0)
    if isinstance(value, collections.abc.Iterator):
        return _checked_later(value, kind)
    return [_inner(kind, one, f"[{place}]") for place, one in enumerate(value)]


def _checked_later(values: Iterable[Any], kind: Taken) -> Iterable[Any]:
    """Yield what an iterator gives: each is checked when it is asked for, long after the call."""
    for place, one in enumerate(values):
        try:
            taken = kind.take(one)
        except _No as no:
            raise refuse(f"item {place}", one, str(no).rpartition("\0")[2] or kind.what) from None
        yield taken


def _object(cls: type) -> Taken:
    name = cls.__name__
    if issubclass(cls, enum.Enum):
        words = ", ".join(f"{name}.{one.name}" for one in cls)
        return Taken(f"one of {words}", lambda value: _member(value, cls))
    if getattr(cls, "_is_protocol", False):
        wanted = [one for one in typing.get_type_hints(cls) | vars(cls) if not one.startswith("_")]
        return Taken(f"a {name}", lambda value: _held(value, all(hasattr(value, one) for one in wanted)))
    if issubclass(cls, os.PathLike):
        return _PLAIN[Path]
    return Taken(f"a {name}", lambda value: _held(value, isinstance(value, cls)))


def _member(value: Any, cls: type[enum.Enum]) -> enum.Enum:
    try:
        return cls(_held(value, isinstance(value, cls | numbers.Integral) and not isinstance(value, bool)))
    except ValueError:
        raise _No from None


_ARRAYS = {
    "integer": "iu", "signedinteger": "iu", "unsignedinteger": "iu", "floating": "iuf", "number": "iuf",
    "bool_": "b", "bool": "b", "void": "V", "generic": "iufb",
}  # fmt: skip
_KINDS = {"iu": "whole numbers", "iuf": "finite numbers", "b": "True and False", "V": "records", "iufb": "numbers"}


def _array(args: Sequence[Any]) -> Taken:
    import numpy as np

    dtype = typing.get_args(args[1])[0] if len(args) > 1 and typing.get_args(args[1]) else np.generic
    name = getattr(dtype, "__name__", "generic")
    kinds = _ARRAYS.get(name) or ("iu" if np.issubdtype(dtype, np.integer) else "iuf")

    def take(value: Any) -> Any:
        found = value
        if isinstance(value, list | tuple):
            try:
                found = np.asarray(value) if len(value) else np.zeros(0, None if name in _ARRAYS else dtype)
            except (ValueError, OverflowError):
                raise _No from None
        is_right = isinstance(found, np.ndarray) and (found.dtype.kind in kinds or not found.size) and found.ndim == 1
        if not is_right or (found.dtype.kind == "f" and not np.isfinite(found).all()):
            raise _No
        return found

    return Taken(f"an array of {_KINDS[kinds]}, of one dimension", take)
