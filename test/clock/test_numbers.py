# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware's 128-bit arithmetic and its statistics, against Python's integers and fractions."""

import math
import random
import struct
import subprocess
from fractions import Fraction

import pytest

from liteprobe.sim.drivers.clock.virtual_time import compile_program

WRAP = 1 << 128
LEAST, MOST = -(1 << 63), (1 << 63) - 1
SEED = 20250


def ask(lines: list[str]) -> list[list[int]]:
    """Return the numbers of each line of the answer."""
    program = compile_program("numbers", sanitize=True)
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def wide_numbers(count: int) -> list[int]:
    """Return numbers of all lengths up to 128 bits, corners among them."""
    generator = random.Random(SEED)
    corners = [0, 1, 2**32 - 1, 2**32, 2**64 - 1, 2**64, WRAP - 1]
    return corners + [generator.getrandbits(generator.randint(1, 128)) for _ in range(count)]


def words(number: int) -> str:
    return f"{number >> 64} {number & (2**64 - 1)}"


OPERATIONS = {
    "multiply": lambda a, b: (a % 2**64) * (b % 2**64),
    "add": lambda a, b: (a + b) % WRAP,
    "subtract": lambda a, b: (a - b) % WRAP,
    "divide": lambda a, b: a // (b % 2**64) if b % 2**64 else WRAP - 1,
    "root": lambda a, b: math.isqrt(a),
    "left": lambda a, b: (a << b % 128) % WRAP,
    "right": lambda a, b: a >> b % 128,
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_128_bits_are_exact(operation: str) -> None:
    numbers = wide_numbers(60)
    pairs = [(a, b) for a in numbers for b in numbers[::3]]
    if operation in ("left", "right"):
        pairs = [(a, b % 128) for a, b in pairs]
    answers = ask([f"{operation} {words(a)} {words(b)}" for a, b in pairs])
    wanted = [OPERATIONS[operation](a, b) for a, b in pairs]
    assert [high << 64 | low for high, low in answers] == wanted


def test_a_quotient_is_exact_where_its_digits_are_guessed_wrong() -> None:
    """Just below, at and above whole multiples: of divisors whose first word says little, by quotients near a power."""
    near = [2**bits + off for bits in (16, 31, 32, 33, 47, 48, 63, 64) for off in (-2, -1, 0, 1)]
    near += [0x8000_0000_FFFF_FFFF, 0xFFFF_FFFF_0000_0001, 0x8000_FFFF_0000_0000, 0x1_FFFF_FFFF]
    divisors = [divisor for divisor in near if divisor < 2**64]
    asked = [
        (number, divisor)
        for divisor in divisors
        for quotient in [*near, 2**96 - 1]
        for number in (quotient * divisor - 1, quotient * divisor, quotient * divisor + divisor - 1)
        if number < WRAP
    ]
    answers = ask([f"divide {words(a)} {words(b)}" for a, b in asked])
    assert [high << 64 | low for high, low in answers] == [a // b for a, b in asked]


def test_a_root_is_exact_next_to_each_square() -> None:
    roots = [2**bits + off for bits in range(2, 64, 3) for off in (-1, 0, 1)]
    asked = [root**2 + off for root in roots for off in (-1, 0, 1)]
    answers = ask([f"root {words(number)} {words(0)}" for number in asked])
    assert [low for _, low in answers] == [math.isqrt(number) for number in asked]


def test_quotients_of_64_bits_are_those_of_c() -> None:
    """Rounded toward zero, the remainder with the sign of what is divided: what rv32's compiler calls for ``/`` and ``%``."""
    numbers = [number % 2**64 for number in wide_numbers(40)] + [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 3]
    asked = [(a, b) for a in numbers for b in numbers if b]
    wanted = []
    for a, b in asked:
        signed = [number - 2**64 * (number >> 63) for number in (a, b)]
        quotient = abs(signed[0]) // abs(signed[1]) * (-1 if (signed[0] < 0) != (signed[1] < 0) else 1)
        remainder = signed[0] - quotient * signed[1]
        # The least number over -1 is one too many: it wraps.
        wanted.append([a // b, a % b, (quotient - LEAST) % 2**64 + LEAST, remainder])
    assert ask([f"quotients {a} {b}" for a, b in asked]) == wanted


def signed_numbers() -> list[int]:
    generator = random.Random(SEED + 1)
    small = [generator.getrandbits(generator.randint(1, 63)) * generator.choice([-1, 1]) for _ in range(60)]
    return [LEAST, LEAST + 1, -1, 0, 1, MOST, *small]


def saturated(number: int) -> int:
    """Return the end in the place of what doesn't fit; so for LEAST itself, whose magnitude doesn't fit on the way."""
    return MOST if number > MOST else LEAST if number < -MOST else number


def test_scale_rounds_to_the_nearest_half_away_and_saturates() -> None:
    asked = [
        (a, b, shift) for a in signed_numbers() for b in signed_numbers()[::5] for shift in (0, 1, 8, 40, 63, 90, 127)
    ]

    def wanted(a: int, b: int, shift: int) -> int:
        size = (abs(a * b) + (1 << shift >> 1)) >> shift
        return saturated(size if a * b >= 0 else -size)

    assert [answer[0] for answer in ask([f"scale {a} {b} {c}" for a, b, c in asked])] == [wanted(*one) for one in asked]


def test_ratio_rounds_toward_zero_and_saturates() -> None:
    asked = [
        (a, b, abs(c) or 1) for a in signed_numbers() for b in signed_numbers()[::5] for c in signed_numbers()[2::7]
    ]

    def wanted(a: int, b: int, c: int) -> int:
        size = abs(a * b) // c
        return saturated(size if a * b >= 0 else -size)

    assert [answer[0] for answer in ask([f"ratio {a} {b} {c}" for a, b, c in asked])] == [wanted(*one) for one in asked]


def test_sum_and_shift_saturate() -> None:
    numbers = signed_numbers()
    sums = [(a, b) for a in numbers for b in numbers[::3]]
    assert [x[0] for x in ask([f"sum {a} {b} 0" for a, b in sums])] == [max(LEAST, min(MOST, a + b)) for a, b in sums]
    shifts = [(a, n) for a in numbers for n in (-90, -63, -1, 0, 1, 30, 62, 63)]

    def shifted(a: int, n: int) -> int:
        if n < -63:
            return 0
        return max(LEAST, min(MOST, a << n)) if n >= 0 else (a + (1 << -n >> 1)) >> -n

    assert [x[0] for x in ask([f"shift {a} {n} 0" for a, n in shifts])] == [shifted(a, n) for a, n in shifts]


# Statistics ---------------------------------------------------------------------------------------


def exact(values: list[int]) -> tuple[Fraction, Fraction]:
    """Return mean and variance of a sample."""
    mean = Fraction(sum(values), len(values))
    return mean, sum((value - mean) ** 2 for value in values) / (len(values) - 1)


@pytest.mark.parametrize("common", [0, 1_700_000_000 * 10**9, -(10**12)])
@pytest.mark.parametrize("width", [3, 1000, 10**9])
def test_mean_and_deviation_are_those_of_exact_arithmetic(common: int, width: int) -> None:
    generator = random.Random(SEED + width)
    values = [common + generator.randint(-width, width) for _ in range(500)]
    is_good, mean, fraction, deviation, least, most, beyond = ask(
        [f"statistics {len(values)} {' '.join(map(str, values))}"]
    )[0]
    true_mean, variance = exact(values)
    assert (is_good, least, most, beyond) == (1, min(values), max(values), 0)
    assert mean * 256 + fraction == math.floor(true_mean * 256)
    assert deviation == math.isqrt(int(variance * 2**16))


def test_a_value_too_far_from_the_first_is_left_out_and_counted() -> None:
    values = [0, 2**31 - 1, 2**31, -(2**31), MOST, LEAST]
    is_good, mean, fraction, _, least, most, beyond = ask([f"statistics {len(values)} {' '.join(map(str, values))}"])[0]
    assert (is_good, least, most, beyond) == (1, 0, 2**31 - 1, 4)
    assert mean * 256 + fraction == (2**31 - 1) * 128
    values = [LEAST, MOST]
    assert ask([f"statistics 2 {LEAST} {MOST}"])[0][6] == 1


def test_no_value_has_no_mean_and_one_has_no_deviation() -> None:
    assert ask(["statistics 0", "statistics 1 -7"]) == [[0] * 7, [1, -7, 0, 0, -7, -7, 0]]


def test_sums_of_a_meter_at_its_limits() -> None:
    """The gateware's accumulators: delays of up to 2^32 - 1 ns, 96 bits of squares."""
    count, value = 2**32 - 1, 2**31 - 1
    squares = count * value**2
    assert ask([f"sums {count} {count * value} {words(squares)}"])[0] == [1, value, 0, 0]
    assert ask([f"sums 2 0 {words(2 * 10**18)}"])[0] == [1, 0, 0, math.isqrt(2 * 10**18 * 2**16)]
    # No two values have the sum 10 and the squares 1.
    assert ask([f"sums 2 10 {words(1)}"])[0][0] == 0


# Ratios of rates ----------------------------------------------------------------------------------


def rate(increment: int, ratio: float) -> list[int]:
    """Return whether it was refused, and the increment that came of it."""
    return ask([f"rate {increment} {struct.unpack('<Q', struct.pack('<d', ratio))[0]}"])[0]


def test_a_double_near_1_multiplies_an_increment_without_arithmetic_of_doubles() -> None:
    generator = random.Random(SEED)
    for ratio in [
        1.0,
        math.nextafter(1, 0),
        math.nextafter(1, 2),
        *(1 + generator.uniform(-1.9e-3, 1.9e-3) for _ in range(50)),
    ]:
        increment = generator.randint(7 << 40, 9 << 40)
        refused, found = rate(increment, ratio)
        assert refused == 0 and abs(found - increment * Fraction(ratio)) <= Fraction(increment, 2**38) + 1


@pytest.mark.parametrize("ratio", [0.0, 1.002, 0.998, 0.5, 2.0, -1.0, math.inf, -math.inf, math.nan, 1e300])
def test_a_ratio_that_no_clock_has_is_refused(ratio: float) -> None:
    assert rate(8 << 40, ratio) == [-22, 8 << 40]
