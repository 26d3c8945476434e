// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause
// What is seen of a run while it runs: each kind has a view, which takes looks as the lines of --jsonl have them.
"use strict";

const POINTS_MOST = 600; // Of a chart: then every second one goes, so that a page that is left open doesn't grow.
const ROWS_MOST = 200;
const DASH = "–";

const number = (value, digits = 0) => value === null || value === undefined || Number.isNaN(value) ? DASH
  : Number(value).toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
const middle = (value) => Array.isArray(value) ? (value[0] + value[1]) / 2 : value;
/** Millions, with their error where three digits show it. */
function mega(value) {
  if (value === null || value === undefined) return DASH;
  const error = Array.isArray(value) ? (value[1] - value[0]) / 2e6 : 0;
  return number(middle(value) / 1e6, 3) + (error >= 0.0005 ? ` ± ${number(error, 3)}` : "");
}

/** A share in per cent, from its bounds, with its error where the digit shows it. */
const percents = ([least, most]) => number(50 * (least + most), 1) + (most - least >= 0.001 ? ` ± ${number(50 * (most - least), 1)}` : "");

/** A time with the unit that suits it, from nanoseconds. */
function time(ns) {
  if (ns === null || ns === undefined) return DASH;
  const value = middle(ns), size = Math.abs(value);
  const [scale, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${number(value / scale, scale === 1 ? 0 : 3)} ${unit}`;
}

/** How many digits tell marks of an axis apart that are a step from each other. */
const digitsOf = (step) => step > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(step) - 1e-9), 0), 9) : 0;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = { light: ["#1f4e8c", "#b4490d", "#1b6e3c", "#8a2f8f", "#946200", "#0b7285", "#b3261e", "#5f5aa2"],
  dark: ["#8db8ef", "#f5a472", "#74d69a", "#d99be0", "#f0c75e", "#6fd0e0", "#ff9a90", "#b3aef5"] };
const isDark = matchMedia("(prefers-color-scheme: dark)");

/** Values over time of several names, of which no more are kept than a chart can show. */
class Series {
  constructor() {
    this.names = [];
    this.data = [[]];
    this.stride = 1;
    this.seen = 0;
  }

  push(x, values) {
    for (const name of Object.keys(values)) {
      if (!this.names.includes(name)) {
        this.names.push(name);
        this.data.push(this.data[0].map(() => null));
      }
    }
    if (this.data[0].length && x <= this.data[0].at(-1)) return;
    if (this.seen++ % this.stride) return;
    this.data[0].push(x);
    this.names.forEach((name, at) => this.data[at + 1].push(values[name] ?? null));
    if (this.data[0].length > POINTS_MOST) {
      this.data = this.data.map((one) => one.filter((_, at) => at % 2 === 0));
      this.stride *= 2;
    }
  }
}

/** A chart of a Series; its last values stand in its legend, for those who don't see it. */
class Chart {
  constructor(title, unit, digits = 3) {
    this.title = title;
    this.digits = digits;
    this.unit = unit;
    this.series = new Series();
    this.place = make("div", { class: "chart", role: "img", "aria-label": title });
    this.element = make("section", { class: "card" }, make("h2", {}, `${title}${unit ? `, ${unit}` : ""}`), this.place);
    this.drawn = null;
  }

  draw() {
    const width = this.place.clientWidth;
    if (!width || !this.series.data[0].length) return;
    const key = `${this.series.names.join("|")} ${isDark.matches}`;
    if (!this.drawn || this.key !== key) {
      this.drawn?.destroy();
      this.key = key;
      const hues = COLOURS[isDark.matches ? "dark" : "light"], ink = colour("--soft"), grid = { stroke: colour("--line"), width: 1 };
      const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
      this.drawn = new uPlot({
        width, height: 200, scales: { x: { time: false } }, cursor: { y: false },
        axes: [{ ...axis, label: "s", labelSize: 16, labelFont: "12px system-ui", size: 34, values: (_, marks) => marks.map((mark) => number(mark, digitsOf(marks[1] - marks[0]))) }, { ...axis, size: 62 }],
        series: [{ label: "s", value: (_, value) => number(value, 3) }, ...this.series.names.map((name, at) => ({
          label: name, stroke: hues[at % hues.length], width: 1.6, dash: at >= hues.length ? [6, 4] : undefined, spanGaps: true,
          points: { show: false }, value: (_, value) => number(value, this.digits) }))],
      }, this.series.data, this.place);
      this.place.querySelectorAll(".u-legend th").forEach((one) => one.removeAttribute("scope"));
    } else {
      if (this.drawn.width !== width) this.drawn.setSize({ width, height: 200 });
      this.drawn.setData(this.series.data);
    }
    const drawn = this.drawn; // Where nobody points at a place its legend has the last values, once it is drawn.
    setTimeout(() => drawn === this.drawn && !(drawn.cursor.left >= 0) && drawn.setLegend({ idx: drawn.data[0].length - 1 }, false));
    const last = this.series.names.map((name, at) => `${name} ${number(this.series.data[at + 1].at(-1), this.digits)}`);
    this.place.setAttribute("aria-label", `${this.title}: now ${last.slice(0, 16).join(", ")} ${this.unit}`);
  }

  end() { this.drawn?.destroy(); }
}

/** A table whose cells are written anew, and never made anew but where rows come. */
class Table {
  constructor(label, heads) {
    this.heads = heads;
    this.body = make("tbody");
    this.element = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((one) =>
        make("th", { scope: "col", class: one.text ? "text" : null }, one.head)))), this.body));
  }

  show(rows) {
    const shown = rows.slice(-ROWS_MOST);
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    shown.forEach((row, at) => {
      const line = this.body.rows[at] ?? this.body.insertRow();
      this.heads.forEach((one, place) => {
        const cell = line.cells[place] ?? line.insertCell();
        const text = String(one.of(row));
        if (cell.textContent !== text) cell.textContent = text;
        cell.className = `${one.text ? "text" : ""} ${one.bad?.(row) ? "bad" : ""}`.trim();
      });
    });
  }
}

/** Bars of a histogram: [low, high, count] each. */
function histogram(title, bins, unit) {
  const cells = new Map(); // Those that were cut to where all values lie may be of the same ends.
  for (const [low, high, count] of bins) if (count) cells.set(`${low} ${high}`, [low, high, count + (cells.get(`${low} ${high}`)?.[2] ?? 0)]);
  const used = [...cells.values()].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  if (!used.length) return make("div", {}, make("h3", {}, title), make("p", { class: "soft" }, "nothing came yet"));
  const most = Math.max(...used.map((one) => one[2])), width = 100 / used.length;
  const svg = svgOf(`0 0 100 40`, `${title}: ${used.length} bins`, { preserveAspectRatio: "none", height: 110, width: "100%" });
  used.forEach(([low, high, count], at) => {
    const height = Math.max(38 * count / most, 0.7);
    const bar = svgPart(svg, "rect", { x: at * width, y: 40 - height, width: Math.max(width - 0.3, 0.2), height, class: "fill" });
    svgPart(bar, "title", {}, `${number(low)} to ${number(high)} ${unit}: ${number(count)}`);
  });
  const [low, high] = [used[0][0], used.at(-1)[1]];
  const ends = `${low === high ? `all ${number(low)} ${unit}: ${number(most)}` : `${number(low)} to ${number(high)} ${unit}, at most ${number(most)} in a bin`}`;
  return make("div", {}, make("h3", {}, title), svg, make("p", { class: "soft" }, ends));
}

const SVG = "http://www.w3.org/2000/svg";
function svgPart(to, tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  to.append(made);
  return made;
}
function svgOf(box, label, attributes = {}) {
  const made = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: box, role: "img", "aria-label": label, ...attributes })) made.setAttribute(name, value);
  return made;
}

class StreamsView {
  constructor() {
    this.rate = new Chart("Rate that came", "Mb/s");
    this.loss = new Chart("Frames lost since the start", "", 0);
    this.delay = new Chart("Delay, 99th percentile", "µs");
    const of = (key) => (row) => number(row[key]);
    this.table = new Table("Streams", [
      { head: "Stream", of: (row) => row.name, text: true }, { head: "Port", of: (row) => `${row.port} → ${row.receive ?? DASH}` },
      { head: "Asked, Mb/s", of: (row) => mega(row.offered_bps) }, { head: "Came, Mb/s", of: (row) => mega(row.received_bps) },
      { head: "Sent", of: of("sent") }, { head: "Received", of: of("received") },
      { head: "Lost", of: of("lost"), bad: (row) => row.lost > 0 }, { head: "Doubled", of: of("duplicated"), bad: (row) => row.duplicated > 0 },
      { head: "Reordered", of: of("reordered"), bad: (row) => row.reordered > 0 }, { head: "Late", of: of("late"), bad: (row) => row.late > 0 },
      { head: "Delay least", of: (row) => time(row.latency_ns?.least) }, { head: "mean", of: (row) => time(row.latency_ns?.mean) },
      { head: "P99", of: (row) => time(row.latency_ns?.p99) }, { head: "most", of: (row) => time(row.latency_ns?.most) }]);
    this.bins = make("div", { class: "cards" });
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Streams"), this.table.element),
      make("div", { class: "cards" }, this.rate.element, this.delay.element, this.loss.element),
      make("section", { class: "card" }, make("h2", {}, "Delays, ns"), this.bins));
    this.due = 0;
  }

  take(look) {
    const by = (act) => Object.fromEntries((look.streams ?? []).map((row) => [row.name, act(row)]));
    const at = look.elapsed_s;
    this.rate.series.push(at, by((row) => row.received_bps && middle(row.received_bps) / 1e6));
    this.delay.series.push(at, by((row) => row.latency_ns?.p99 && middle(row.latency_ns.p99) / 1e3));
    this.loss.series.push(at, by((row) => row.lost));
  }

  draw(look) {
    this.table.show(look.streams ?? []);
    [this.rate, this.delay, this.loss].forEach((one) => one.draw());
    if (performance.now() < this.due) return; // Pictures of delays change slowly.
    this.due = performance.now() + 500;
    this.bins.replaceChildren(...(look.streams ?? []).filter((row) => row.latency_ns).map((row) =>
      histogram(row.name, row.latency_ns.histogram, "ns")));
  }

  end(result) { // The last figures are those of the result.
    this.due = 0;
    this.draw(result);
  }

  get charts() { return [this.rate, this.delay, this.loss]; }
}

/** A session to a reflector: its packets as a stream, then what came of each way. */
class StampView extends StreamsView {
  end(result) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    const ways = new Table("Ways", [
      { head: "Way", of: (way) => way.name, text: true }, { head: "Sent", of: (way) => number(middle(way.sent)) }, { head: "Received", of: (way) => number(middle(way.received)) },
      { head: "Lost", of: (way) => number(middle(way.lost)), bad: (way) => middle(way.lost) > 0 }, { head: "Delay least", of: (way) => time(way.delay_ns?.least) },
      { head: "mean", of: (way) => time(way.delay_ns?.mean) }, { head: "P99", of: (way) => time(way.delay_ns?.p99) }, { head: "most", of: (way) => time(way.delay_ns?.most) }]);
    ways.show(result.ways ?? []);
    this.element.prepend(make("section", { class: "card" }, make("h2", {}, "There and back"), ways.element));
  }
}

class TrainView {
  constructor() {
    this.words = make("p");
    this.bar = make("progress", { "aria-label": "Frames sent" });
    const of = (key) => (row) => number(row[key]), delay = (key) => (row) => time(row.owd_ns?.[key]);
    this.table = new Table("Programs that have ended", [
      { head: "Length", of: of("length") }, { head: "Frames", of: of("count") }, { head: "Sent", of: of("sent") }, { head: "Received", of: of("received") },
      { head: "Lost", of: of("lost"), bad: (row) => row.lost > 0 }, { head: "Doubled", of: of("duplicated"), bad: (row) => row.duplicated > 0 },
      { head: "Reordered", of: of("reordered"), bad: (row) => row.reordered > 0 }, { head: "Frames came at, Mb/s", of: (row) => mega(row.frame_bps) },
      { head: "Delay least", of: delay("min") }, { head: "mean", of: delay("mean") }, { head: "P99", of: delay("p99") }, { head: "most", of: delay("max") },
      { head: "Records", of: (row) => row.complete ? "all" : "incomplete", text: true, bad: (row) => !row.complete }]);
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Trains"), this.words, this.bar),
      make("section", { class: "card" }, make("h2", {}, "Programs that have ended"), this.table.element));
  }

  take() {}
  draw(look) {
    this.words.textContent = `${number(look.sent)} of ${number(look.asked)} frames${look.programs.length ? "" : "; no program has ended yet"}`;
    this.bar.max = look.asked;
    this.bar.value = look.sent;
    this.table.show(look.programs);
  }

  end(result) { this.table.show(result.trains ?? []); }
  get charts() { return []; }
}

/** The emulated network: a lane for each class of a direction, whose queue fills. */
class NetworkView {
  constructor(set) {
    this.rate = new Chart("Rate that left", "Mb/s");
    this.queue = new Chart("Frames that wait", "", 0);
    this.delay = new Chart("Mean delay since the start", "ms");
    this.picture = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The network" });
    this.table = new Table("Classes", [
      { head: "Class", of: (row) => `${row.way} ${row.name}`, text: true }, { head: "Arrived", of: (row) => number(row.counts.arrived) },
      { head: "Sent", of: (row) => number(row.counts.sent) }, { head: "Dropped", of: (row) => number(row.dropped), bad: (row) => row.dropped > 0 },
      { head: "Lost", of: (row) => number(row.counts.lost) }, { head: "Full", of: (row) => number(row.counts.full) },
      { head: "Early", of: (row) => number(row.counts.early) }, { head: "In, Mb/s", of: (row) => mega(row.arrived_bps) },
      { head: "Out, Mb/s", of: (row) => mega(row.sent_bps) }, { head: "Waits", of: (row) => number(row.queue.frames) },
      { head: "Delay least", of: (row) => time(row.delays.least_ns) }, { head: "mean", of: (row) => time(row.delays.mean_ns) },
      { head: "most", of: (row) => time(row.delays.most_ns) }]);
    this.words = make("input", { id: "set-words", class: "wide", autocomplete: "off", spellcheck: "false", placeholder: "there.voice.delay=5ms both.rate=2Mbit" });
    this.said = make("p", { role: "status" });
    const form = make("form", { onsubmit: (event) => {
      event.preventDefault();
      set(this.words.value.trim().split(/\s+/)).then((done) => {
        this.said.className = "good";
        this.said.textContent = `holds from ${number(done.holds_from_s, 6)} s on`;
      }, (error) => {
        this.said.className = "error";
        this.said.textContent = error.message;
      });
    } }, make("h2", {}, "Change it while it runs"),
    make("label", { for: "set-words" }, "Settings, as direction.class.key=value, with spaces between them: "), this.words,
    make("p", { class: "buttons" }, make("button", { class: "main" }, "Set")), this.said);
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Network"), this.picture),
      make("section", { class: "card" }, form), make("section", { class: "card" }, make("h2", {}, "Classes"), this.table.element),
      make("div", { class: "cards" }, this.rate.element, this.queue.element, this.delay.element));
  }

  rows(look) {
    return ["there", "back"].filter((way) => look[way]).flatMap((way) => look[way].classes.map((one) => ({ way, ...one,
      dropped: ["discarded", "lost", "full", "early", "no_store"].reduce((sum, name) => sum + one.counts[name], 0) })));
  }

  take(look) {
    const by = (act) => Object.fromEntries(this.rows(look).map((row) => [`${row.way} ${row.name}`, act(row)]));
    const at = look.there.seconds;
    this.rate.series.push(at, by((row) => row.sent_bps === null ? null : row.sent_bps / 1e6));
    this.queue.series.push(at, by((row) => row.queue.frames));
    this.delay.series.push(at, by((row) => row.delays.mean_ns === null ? null : row.delays.mean_ns / 1e6));
  }

  draw(look) {
    const rows = this.rows(look);
    this.table.show(rows);
    [this.rate, this.queue, this.delay].forEach((one) => one.draw());
    const said = rows.map((row) => `${row.way} ${row.name}: ${row.queue.frames} wait`).join(", ");
    // A lane: a line of words or two, the wire below them. On a telephone ports are as slim as their numbers.
    const isSlim = this.picture.clientWidth < 700, box = isSlim ? 26 : 70, width = isSlim ? Math.max(this.picture.clientWidth, 300) : 760;
    const lane = isSlim ? 78 : 58, left = box + 10, right = width - box - 10, height = rows.length * lane + 20;
    const svg = svgOf(`0 0 ${width} ${height}`, `Two ports and ${rows.length} classes between them: ${said}`, { width, height });
    [[5, 0], [right + 5, 1]].forEach(([x, port]) => {
      svgPart(svg, "rect", { x, y: 10, width: box, height: height - 20, rx: 8, class: "box" });
      svgPart(svg, "text", { x: x + box / 2, y: height / 2, "text-anchor": "middle" }, isSlim ? port : `port ${port}`);
    });
    rows.forEach((row, at) => {
      const y = 10 + at * lane, isBack = row.way === "back", mid = y + lane - 24, track = 120;
      const words = (x, line, text, more = {}) => svgPart(svg, "text", { x, y: y + 18 * line, ...more }, text);
      svgPart(svg, "path", { d: isBack ? `M${right + 5} ${mid}H${left - 5}m9 -5l-9 5l9 5` : `M${left - 5} ${mid}H${right + 5}m-9 -5l9 5l-9 5`, class: "wire" });
      const from = isSlim ? isBack ? right - track - 20 : left + 20 : isBack ? 420 : 220;
      const share = Math.min(row.queue.frames / Math.max(row.queue.most, 1), 1);
      svgPart(svg, "rect", { x: from, y: mid - 12, width: track, height: 24, rx: 3, class: "track" });
      svgPart(svg, "rect", { x: isBack ? from : from + track * (1 - share), y: mid - 12, width: track * share, height: 24, rx: 3, class: "fill" });
      const queue = `${number(row.queue.frames)} wait, ${number(row.queue.most)} at most`, passed = `${time(row.delays.mean_ns)}, ${mega(row.sent_bps)} Mb/s`;
      words(left + 6, 1, `${row.name}${look[row.way].is_link_up ? "" : " (link down)"}`);
      words(right - 6, 1, `${number(row.dropped)} dropped`, { "text-anchor": "end", class: row.dropped ? "bad" : "soft" });
      words(isSlim ? left + 6 : from, isSlim ? 2 : 1, queue);
      words(isSlim ? right - 6 : isBack ? 220 : 430, isSlim ? 2 : 1, passed, isSlim ? { "text-anchor": "end" } : {});
    });
    this.picture.replaceChildren(svg);
  }

  get charts() { return [this.rate, this.queue, this.delay]; }
}

/** What a port has sent of what it is to send: a replay, or sets. */
class ProgressView {
  constructor() {
    this.rate = new Chart("Frames sent", "", 0);
    this.list = make("div");
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Progress"), this.list),
      make("div", { class: "cards" }, this.rate.element));
    this.began = performance.now();
  }

  take(look) {
    const frames = Object.entries(look.frames ?? {}).map(([port, count]) => [`port ${port}`, count]);
    this.rate.series.push((performance.now() - this.began) / 1e3, Object.fromEntries(frames));
  }

  draw(look) {
    this.list.replaceChildren(...Object.entries(look.frames ?? {}).map(([port, count]) => {
      const asked = look.asked?.[port], late = look.underruns?.[port];
      return make("div", {}, make("label", {}, `Port ${port}: ${number(count)}${asked ? ` of ${number(asked)}` : ""} frames`,
        make("progress", asked ? { max: asked, value: count } : {})),
      make("p", { class: late ? "error" : "soft" }, `${number(late)} too late from this host, ${number(look.resent?.[port])} datagrams sent again`));
    }));
    this.rate.draw();
  }

  get charts() { return [this.rate]; }
}

class CountView {
  constructor() {
    this.element = make("section", { class: "card" }, make("h2", {}, "Capture"), this.text = make("p"));
  }

  take() {}
  draw(look) { this.text.textContent = `${number(look.frames)} frames are in the file`; }
  get charts() { return []; }
}

const OF_BINS = { length: "frame length without FCS", delay: "one-way delay", arrival: "time from frame to frame" };
const PLAIN_EVENTS = ["all_frames", "all_octets", "management_frames", "classified", "matched", "passed", "sampled", "kept", "own_frames"];

class MonitorView {
  constructor() {
    this.rate = new Chart("Rate on the line", "Mb/s");
    this.ports = make("div", { class: "cards" });
    this.table = new Table("Streams that came", [
      { head: "Port", of: (row) => row.port }, { head: "Stream", of: (row) => row.stream_id ?? "others", text: true },
      { head: "Frames", of: (row) => number(row.frames) }, { head: "Lost", of: (row) => row.stream_id === null ? DASH : number(row.lost), bad: (row) => row.stream_id !== null && row.lost > 0 },
      { head: "Doubled", of: (row) => number(row.duplicated) }, { head: "Reordered", of: (row) => number(row.reordered) },
      { head: "Delay least", of: (row) => time(row.delay_min_ns) }, { head: "mean", of: (row) => time(row.delay_mean_ns) }, { head: "most", of: (row) => time(row.delay_max_ns) },
      { head: "Missing before", of: (row) => row.stream_id === null ? DASH : number(row.missing_before) }]);
    this.bins = make("div", { class: "cards" });
    this.element = make("div", {}, this.ports, make("div", { class: "cards" }, this.rate.element),
      make("section", { class: "card" }, make("h2", {}, "Streams that came"), this.table.element,
        make("p", { class: "soft" }, "Lost: since the first look at the stream. Missing before: numbers that had not come by then, sent before this monitor began, or lost.")),
      make("section", { class: "card" }, make("h2", {}, "Histograms"), this.bins));
    this.cards = new Map();
    this.due = 0;
  }

  take(look) {
    const rates = (look.ports ?? []).map((port) => [`port ${port.port}`, port.rate?.line_bits_per_s == null ? null : port.rate.line_bits_per_s / 1e6]);
    this.first ??= look.clock.now_ns; // The probe counts from 1970.
    this.rate.series.push((look.clock.now_ns - this.first) / 1e9, Object.fromEntries(rates));
  }

  draw(look) {
    for (const port of look.ports ?? []) {
      if (!this.cards.has(port.port)) {
        const head = make("p");
        const kinds = new Table(`What became of the frames of port ${port.port}`, [{ head: "What became of frames", of: (row) => row[0], text: true }, { head: "Frames", of: (row) => number(row[1]) }, { head: "%", of: (row) => row[2] }]);
        const causes = new Table(`Losses of port ${port.port} by cause`, [{ head: "Refused, damaged or lost", of: (row) => row[0], text: true }, { head: "Frames", of: (row) => number(row[1]), bad: (row) => row[1] > 0 }]);
        const sampled = make("p", { class: "soft" }), protocols = new Table(`Protocols of port ${port.port}`, [{ head: "Protocol", of: (row) => row.protocol, text: true },
          { head: "Frames", of: (row) => number(row.frames) }, { head: "Octets", of: (row) => number(row.octets) }, { head: "% of all", of: (row) => percents(row.share) }]);
        this.cards.set(port.port, { head, kinds, causes, sampled, protocols });
        this.ports.append(make("section", { class: "card" }, make("h2", {}, `Port ${port.port}`), head, make("h3", {}, "By protocol"), sampled, protocols.element, make("div", { class: "cards" }, kinds.element, causes.element)));
      }
      const { head, kinds, causes, sampled, protocols } = this.cards.get(port.port), counters = port.counters, found = look.protocols;
      const seen = found?.ports.find((one) => one.port === port.port);
      sampled.textContent = seen ? `Counted of ${number(seen.seen)} of ${number(seen.of)} frames${found.one_of > 1 ? `: one in ${found.one_of} is looked at` : ""}.` : "Not counted: this run looks at no headers.";
      protocols.element.hidden = !seen?.seen;
      protocols.show((found?.rows ?? []).filter((row) => row.port === port.port));
      head.textContent = `${port.rate?.line_bits_per_s == null ? "no rate yet" : `${mega(port.rate.line_bits_per_s)} Mb/s, ${number(port.rate.frames_per_s)} frames/s`}; ${number(port.events.all_frames ?? counters.frames)} frames, ${number(port.events.all_octets ?? counters.octets)} octets`;
      const words = (name) => name.replaceAll("_", " ").replace("fcs", "FCS");
      kinds.show(Object.entries(port.events).filter(([name]) => PLAIN_EVENTS.includes(name) && name !== "all_octets").map(([name, count]) =>
        [words(name), count, port.events.all_frames ? number(100 * count / port.events.all_frames, 1) : DASH]));
      causes.show(Object.entries(port.events).filter(([name]) => !PLAIN_EVENTS.includes(name)).map(([name, count]) => [words(name), count]));
    }
    this.table.show((look.ports ?? []).flatMap((port) => port.streams.filter((one) => one.frames).map((one) => ({ port: port.port, ...one }))));
    this.rate.draw();
    if (performance.now() < this.due) return;
    this.due = performance.now() + 500;
    this.bins.replaceChildren(...(look.ports ?? []).flatMap((port) => Object.entries(port.histograms[0] ?? {}).map(([name, found]) =>
      histogram(`Port ${port.port}, ${OF_BINS[name]}`, found.counts.map((count, at) =>
        [found.origin + at * found.width, found.origin + (at + 1) * found.width - 1, count]), found.unit))));
  }

  get charts() { return [this.rate]; }
}

class SuiteView {
  constructor() {
    this.words = make("p");
    this.bar = make("progress", { "aria-label": "Trials" });
    this.table = new Table("Trials that have ended", [
      { head: "Trial", of: (row) => row.number }, { head: "What", of: (row) => row.name, text: true }, { head: "Time, s", of: (row) => number(row.seconds, 3) },
      { head: "Load, %", of: (row) => number(100 * row.load, 3) }, { head: "Sent", of: (row) => number(row.sent) }, { head: "Lost", of: (row) => number(row.lost), bad: (row) => row.lost > 0 },
      { head: "Verdict", of: (row) => row.verdict, text: true, bad: (row) => row.verdict !== "valid" }, { head: "Why", of: (row) => row.reason, text: true }]);
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Suite"), this.words, this.bar),
      make("section", { class: "card" }, make("h2", {}, "Trials that have ended"), this.table.element));
  }

  take() {}
  draw(look) {
    this.words.textContent = `trial ${number(look.trials + 1)} of up to ${number(look.most)}: ${look.doing}, ${time(look.elapsed_s * 1e9)}`;
    this.bar.max = Math.max(look.most, look.trials + 1);
    this.bar.value = look.trials;
    this.table.show(look.ended ?? []);
  }

  get charts() { return []; }
}

const VIEWS = { streams: StreamsView, train: TrainView, stamp: StampView, network: NetworkView, replay: ProgressView, sets: ProgressView, monitor: MonitorView, capture: CountView,
  rfc2544: SuiteView, y1564: SuiteView, soak: SuiteView };
