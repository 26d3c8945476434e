# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

from liteprobe.soc import same_names

same_names.install()
