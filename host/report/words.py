# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a report says in words, apart from the figures."""

DEFINITIONS = {
    "Frame length": """
        Octets from the destination address to the end of the payload, without FCS. On the wire a frame takes 24 octets
        more: preamble 7, start delimiter 1, FCS 4, gap 12.""",
    "Time stamps": """
        Departure and arrival are the moments at which the start delimiter (SFD) is at the probe's pins. Departures are
        written into the frame as it leaves.""",
    "Dispersion rate": """
        Of a train of N frames of length L: (N − 1) × 8 × (L + 24) bits over the time from the first arrival to the
        last; the mean over the trains of a row, with the 95 % interval of that mean (Student, mended for skewness).
        Where nothing else is on the way it is the rate at which the train came; with other traffic it is neither the
        capacity nor what is left of it. Frame, IP and UDP rates count L, L − 14 and L − 42 octets of the same frames.""",
    "Capacity": """
        Rate of the narrowest link, by the pairs of frames with the least sum of delays: those were not queued, so their
        distance is what that link takes for a frame (CapProbe, 2004). Given only where several pairs agree and nothing
        contradicts them; known to one tick of that distance.""",
    "On the wire, at the pins": """
        What the simulated wire did is the truth of capacity, delay and loss. The dispersion rate by the times at the
        pins is the same formula over other stamps: it checks the stamps, not the formula.""",
    "One-way delay": """
        Arrival less departure of each frame, by sequence number (RFC 7679). Percentiles are observed values.""",
    "IPDV, PDV": """
        Delay less that of the frame sent before (RFC 3393); delay less the least of its row (RFC 5481).""",
    "Lost, duplicated, reordered": """
        Sent but not received whole (RFC 7680); arrived again (RFC 5560); arrived after a frame with a greater number
        (RFC 4737).""",
    "Late": """
        Frames that left after the tick that was asked for. Each is counted; none is hidden.""",
    "Bit errors": """
        Bits of a payload of PRBS-31 that are not as sent, in frames whose FCS is right; in those whose FCS is wrong they
        are counted apart. Without an error the ratio is given that would have shown one with a probability of 95 %.""",
}

#: Words of a report of trains.
OF_TRAINS = tuple(name for name in DEFINITIONS if name != "Bit errors")

PAPER = """
    Ruiz et al. (2015) measured the same sizes, counts and repeats with a board of 1400 USD. Their delays include their
    own buffers (13 ns an octet in a loopback) and a real switch; those here are from pin to pin, and the switch is
    simulated with a latency that is known. So compare the deviations: theirs are 0 to 7 ns in the loopback, those of
    software (pktgen) 5 to 17 µs."""

DELAY_BOUND = """
    The clock was {states}; {trust}, by the probe's own account: a departure is stamped by the clock
    that sends it; an arrival may come to its stamp up to one tick late. That bound is of one delay; means are better
    only where the error differs from frame to frame. Constant delays inside a PHY are not in it: liteprobe calibrate
    takes them out, at each link-up."""

RATE_BOUND = """
    A train's dispersion rate is known to one tick of its length: {span} in these rows. Standard deviations are the
    scatter that was seen, not a bound; zero means that all trains took the same number of ticks."""

THROUGHPUT = """
    Lines: what the link can carry. {marks} Below: mean of the trains over theory; a bar is the 95 % interval of the mean,
    and one tick (8 ns) more."""

DELAY = """
    Means, with bars from the least to the greatest delay of a row. Lines: least squares through the mean of every
    train, the calibration of the path."""

HISTOGRAM = """
    Every packet, over the least delay of its row. The scale of shares is logarithmic, so that single packets show."""

DISTRIBUTION = """
    Share of the frames sent that came within a delay over the least of their row: each line ends at the share that came
    at all, so what is missing to 100 % is lost. Marks: 50, 99 and 99.9 % of those that came."""

DISPERSION = """
    {name}, {count} frames of {length} octets: time from arrival to arrival, {least} to {most} ns. Drawn thinned where
    the train is long."""

OWD_SENT = """
    {frames} frames were sent from probe to probe, {names}. The first of each program left at a whole period of the PPS.
    Every figure below is computed from all of them, or left out."""

OWD_OVER_TIME = """
    Each packet of programs whose records are all there, at the time at which it was sent. The band is the 95 % bound of
    the error of a delay about the mean of its program; a stroke at the bottom is a packet that was lost. Drawn thinned
    where there are many."""

OWD_SHARES = """
    Every packet, in bins of one width a panel."""

OWD_CLOCKS = """
    What each probe said of its own clock at the end of each row. The rate is that of its oscillator, free-running,
    against the PPS; that of the line that comes to the receiver is by the receiver's clock, ± 95 %."""

OWD_BOUND = """
    A delay is arrival by one clock less departure by another, so it is off by the bounds of both clocks, and by what is
    left of the tick of 8 ns in which an arrival is stamped: that sum is the bound above. It holds what a probe can know
    of itself; delays of the antenna's cable, of the receiver and inside of PHYs are constants, which a calibration over
    a short cable takes out. With both ways, half of the difference between them is the asymmetry of the way and of
    those constants: nothing measured here can tell the two apart."""

SENT = """
    {frames} frames of {span} octets were sent as packet trains through: {names}. Every figure below is computed from
    all of them, or left out."""


TRAFFIC_SENT = """
    {streams} went through {url} for {duration} s, {end}."""

TRAFFIC_DELAYS = """
    Of the frames that came, the share that had come within a delay. A band is what the bins of the probe's histogram
    leave open: the line is in its middle. Least and greatest delay are exact."""

TRAFFIC_RATES = """
    Bars: the rate at which a stream came, first frame to last one. Strokes: the mean that was asked for."""

TRAFFIC_BINS = """
    Arrival less departure of each frame (RFC 7679). Least, mean, deviation and greatest are of all frames that came,
    exact to a tick. Percentiles are known by the bins of a histogram: half the width of the bin is their error."""

TRAFFIC_BOUND = """
    The clock was {state}; {trust}, by the probe's own account: a departure is stamped by the clock
    that sends it; an arrival may come to its stamp up to one tick late. Rates of arrival are by the stamps of the first
    and the last frame. Lost is what was sent and had not come when the waiting time after the last frame was over."""


def words(text: str, **figures: str) -> str:
    """Return a text in one line, with its figures filled in."""
    return " ".join(text.split()).format(**figures)
