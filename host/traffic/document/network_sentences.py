# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What frames of a class meet, in words."""

from collections.abc import Iterator

from liteprobe.host.traffic.document.network_write import rate_text, share_text, time_text
from liteprobe.host.traffic.network.network import (
    Background,
    Bernoulli,
    GilbertElliott,
    LossList,
    LossPattern,
    Queue,
    TrafficClass,
)


def treatment(one: TrafficClass) -> str:
    """Return what frames of a class meet, in the order in which they meet it."""
    return "; ".join(_parts(one)) or "nothing"


# # #


def _parts(one: TrafficClass) -> Iterator[str]:
    if one.discard:
        yield "discarded"
    if one.loss:
        yield _loss(one)
    if isinstance(one.pattern, LossPattern):
        yield f"loss pattern of {one.pattern.count} frames"
    if isinstance(one.pattern, LossList):
        yield f"{one.pattern.count} frames lost by number"
    if one.is_lost_late and (one.loss or one.pattern):
        yield "lost behind the queue"
    yield from _queue(one.queue)
    if one.background:
        yield _background(one.background)
    if one.bucket:
        yield f"bucket {rate_text(one.bucket.rate_bps)}, burst {one.bucket.burst:,} octets"
    if one.weight > 1:
        yield f"weight {one.weight}"
    yield _delay(one)
    if one.reorder:
        yield f"{share_text(one.reorder.share)} held back for {time_text(one.reorder.extent_ns)}"
    if one.duplicate:
        yield f"{share_text(one.duplicate)} duplicated"
    if one.corrupt:
        yield f"{share_text(one.corrupt)} corrupted{', FCS mended' if one.is_mended else ''}"


def _loss(one: TrafficClass) -> str:
    loss = one.loss
    if isinstance(loss, Bernoulli):
        return f"loss {share_text(loss.share)}"
    assert isinstance(loss, GilbertElliott)
    letters = ", ".join(f"{name} {share_text(getattr(loss, name))}" for name in ("p", "r", "h", "k"))
    return f"loss in bursts ({letters})"


def _queue(queue: Queue) -> Iterator[str]:
    limits = {"frames": queue.frames, "octets": queue.octets}
    given = [f"{value:,} {name}" for name, value in limits.items() if value is not None]
    if given:
        yield "queue of " + " or ".join(given)
    if queue.red:
        yield f"RED from {queue.red.least} to {queue.red.most} frames, up to {share_text(queue.red.share)}"


def _background(one: Background) -> str:
    if one.kind == "pattern":
        return f"background pattern of {len(one.entries)} frames"
    pace = f"{share_text(one.share)} of the link" if one.share is not None else ""
    pace = rate_text(one.rate_bps) if one.rate_bps is not None else pace
    pace = f"each {time_text(one.interval_ns)}" if one.interval_ns is not None else pace
    bursts = f", bursts of {float(one.burst):g}, pause {time_text(one.pause_ns)}" if one.burst else ""
    return f"{one.kind} background {pace}, {one.length} octets{bursts}"


def _delay(one: TrafficClass) -> str:
    delay = "least delay" if one.delay_ns is None else f"delay {time_text(one.delay_ns)}"
    if not one.jitter:
        return delay
    if one.jitter.kind == "table":
        found = f"{delay} and a table of {len(one.jitter.table_ns):,}"
    else:
        found = f"{delay} ± {time_text(one.jitter.spread_ns)} ({one.jitter.kind})"
    return found + (f", correlation {share_text(one.jitter.correlation)}" if one.jitter.correlation else "")
