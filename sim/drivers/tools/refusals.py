# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says how calls are refused, so that a test can compare the words."""

from collections.abc import Callable

import pytest

from liteprobe.host.base.errors import UsageError


def refusal(call: Callable[..., object], *arguments: object, error: type[Exception] = UsageError, **options: object) -> str:
    """Return what ``error`` says, which a call must raise."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    return str(caught.value)
