# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the builder of a transmit port has headers from that vary."""

from migen import *

from litex.gen import *

def add_headers(path, templates):
    """Let the builder of a TransmitPath read the headers of a `StreamSource` or of `FrameTemplates`."""
    build = path.build
    path.comb += [
        templates.header_read.adr.eq(build.header_adr),
        templates.header_read.re.eq(build.header_re),
        build.header_dat.eq(templates.header_read.dat),
        *[getattr(templates, name).eq(getattr(build, name)) for name in ("builds", "build_stream", "build_word")],
    ]
