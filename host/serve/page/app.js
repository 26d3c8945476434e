// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause
// The page: what is known of the probe, what runs, forms that start it, results. It asks its own server and nobody else.
"use strict";

const STALE_S = 3; // As of the server: what is older looks lost.
const DRAW_MS = 100;
const main = document.getElementById("main"), statusBar = document.getElementById("status"), ownerBar = document.getElementById("owner");
const kept = (name, value) => value === undefined ? sessionStorage.getItem(name) : value === null ? sessionStorage.removeItem(name)
  : sessionStorage.setItem(name, value);
const page = { state: null, heard: 0, kinds: null, view: null, run: null, look: null, result: null, socket: null, error: "", forms: {}, skipped: 0 };

// The token may come in the address, behind #, which no server is sent; it is kept until this tab is closed.
const given = /^#token=(.+)$/.exec(location.hash);
if (given) {
  kept("token", decodeURIComponent(given[1]));
  history.replaceState(null, "", "#now");
}

class ServerError extends Error {
  constructor(status, said) {
    super(said.error ?? `the server says ${status}`);
    Object.assign(this, { status, part: said.part, line: said.line, path: said.path });
  }
}

async function ask(method, path, body) {
  const headers = {};
  if (kept("token")) headers.authorization = `Bearer ${kept("token")}`;
  if (kept("key")) headers["x-liteprobe-key"] = kept("key");
  const isFile = body instanceof Blob;
  if (body !== undefined) headers["content-type"] = isFile ? "application/octet-stream" : "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined || isFile ? body : JSON.stringify(body) });
  } catch {
    throw new ServerError(0, { error: "the server doesn't answer: see that liteprobe serve runs" });
  }
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401) {
    const token = await question("Token", said.error, "Token", "");
    if (token) {
      kept("token", token);
      return ask(method, path, body);
    }
  }
  if (!answer.ok) throw new ServerError(answer.status, said);
  return said;
}

/** Ask a person for a line; null where none is given. */
function question(title, about, label, value) {
  const dialog = document.getElementById("ask"), field = document.getElementById("ask-value");
  if (dialog.open) return Promise.resolve(null);
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-about").textContent = about;
  document.getElementById("ask-label").textContent = label;
  field.value = value;
  field.type = title === "Token" ? "password" : "text";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "ok" ? field.value : null), { once: true }));
}

// Lines ------------------------------------------------------------------------------------------

function connect() {
  const protocols = ["liteprobe", ...(kept("token") ? [`bearer.${kept("token")}`] : [])];
  const socket = page.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/lines`, protocols);
  socket.onopen = () => kept("key") && socket.send(JSON.stringify({ key: kept("key") }));
  socket.onmessage = (event) => take(JSON.parse(event.data));
  socket.onclose = () => setTimeout(async () => {
    if (!page.state) await ask("GET", "/api/state").then(take, (error) => { page.error = error.message; });
    connect();
  }, 1000);
}

function take(line) {
  page.heard = performance.now();
  if (line.kind === "state") {
    // A line that was on its way while the probe was claimed knows of no owner, or of the one before.
    if (page.state?.claims > line.claims) Object.assign(line, { owner: page.state.owner, claims: page.state.claims });
    page.state = line;
    page.skipped = line.skipped ?? page.skipped;
    const claim = Number(kept("claim"));
    if (kept("key") && (!line.owner || line.claims !== claim)) kept("key", null);
    if (line.run && line.run.number !== page.run?.number && !["ended", "failed"].includes(line.run.state)) begin(line.run);
    else if (line.run?.number === page.run?.number) page.run = line.run;
    showStatus();
  } else if (line.kind === "look") {
    page.look = line;
    page.view?.take(line);
    draw();
  } else if (line.kind === "result") {
    page.result = line;
    showEnd();
  }
}

function begin(run) {
  page.view?.charts.forEach((one) => one.end());
  Object.assign(page, { run, look: null, result: null, view: VIEWS[run.kind] ? new VIEWS[run.kind](set) : null });
  if (location.hash === "#now" || !location.hash) show();
}

const set = (words) => ask("POST", "/api/runs/current/set", { words });

let isDrawing = false, isDue = false, pauseMs = DRAW_MS;
function draw() {
  isDue = true;
  if (isDrawing || document.hidden) return;
  isDrawing = true;
  setTimeout(() => requestAnimationFrame(() => {
    const began = performance.now();
    isDue = false;
    if (page.look && page.view?.element.isConnected) {
      page.view.draw(page.look);
      if (page.result?.state === "ended") page.view.end?.(page.result); // What the last look had is less.
    }
    requestAnimationFrame(() => { // Where it takes long until that is painted it is drawn more seldom: lines are taken meanwhile.
      pauseMs = Math.max(DRAW_MS, 4 * (performance.now() - began));
      isDrawing = false;
      if (isDue) draw();
    });
  }), pauseMs);
}
document.addEventListener("visibilitychange", draw);
addEventListener("resize", draw);
isDark.addEventListener("change", draw);

// Above ------------------------------------------------------------------------------------------

const pill = (name, text, state) => make("span", { class: `pill ${state ?? ""}` }, `${name} `, make("b", {}, text));
let shownStatus = "";

function showStatus() {
  const age = page.heard ? (performance.now() - page.heard) / 1e3 : 0, state = page.state, pills = [];
  if (!state) pills.push(pill("Server", page.error || "connecting…", page.error ? "bad" : ""));
  else {
    const probe = state.probe, old = probe.age_s + age;
    const isLost = age > STALE_S;
    if (isLost) pills.push(pill("Server", `STALE, silent for ${age.toFixed(0)} s`, "bad"));
    const words = { here: "here", opening: "opening…", stale: `STALE, ${old.toFixed(0)} s old`, lost: `LOST, STALE for ${old.toFixed(0)} s` }[probe.state];
    pills.push(pill("Probe", words, probe.state === "here" ? isLost ? "" : "good" : probe.state === "opening" ? "warn" : "bad"));
    const isOld = isLost || ["stale", "lost"].includes(probe.state); // What is known of it was so: no colour says that it is.
    const last = (name, text, kind) => pills.push(pill(name, isOld ? `was ${text}` : text, isOld ? "" : kind));
    if (probe.clock) {
      const bound = probe.clock.bound_ns === null ? "error not known" : `± ${number(probe.clock.bound_ns, 1)} ns`;
      last("Clock", `${probe.clock.state}, ${bound}`, probe.clock.state === "locked" ? "good" : "warn");
    }
    for (const port of probe.ports ?? []) last(`Port ${port.port}`, port.is_up ? "up" : "down", port.is_up ? "good" : "bad");
    if (state.run) pills.push(pill(state.run.kind, state.run.name === state.run.kind ? state.run.state : `${state.run.name}: ${state.run.state}`, state.run.state === "failed" ? "bad" : ""));
    if (page.skipped) pills.push(pill("Left out, this reader is slow", `${number(page.skipped)} lines`, "warn"));
    if (probe.error) pills.push(make("span", { class: "error" }, probe.error));
    main.classList.toggle("stale", isOld);
  }
  const isBusy = state?.run && ["waiting", "running", "stopping"].includes(state.run.state);
  if (isBusy && kept("key")) pills.push(make("button", { id: "stop", type: "button", disabled: state.run.state === "stopping", onclick: () => act(() => ask("POST", "/api/runs/current/stop")) }, "Stop"));
  const text = pills.map((one) => `${one.className}${one.textContent}${one.disabled ?? ""}`).join("|");
  if (text !== shownStatus) { // A button that is made anew each second would lose the focus.
    const hadFocus = document.activeElement?.id === "stop";
    statusBar.replaceChildren(...pills);
    shownStatus = text;
    if (hadFocus) document.getElementById("stop")?.focus();
  }
  showOwner();
}

let shownOwner = null;
function showOwner() {
  const owner = page.state?.owner, isOwn = Boolean(owner && kept("key")), key = `${owner?.name} ${isOwn}`;
  if (key === shownOwner) return;
  shownOwner = key;
  const who = owner ? isOwn ? `You, ${owner.name}, own the probe` : `${owner.name} owns the probe since ${new Date(owner.since).toLocaleTimeString()}` : "Nobody owns the probe";
  const button = isOwn ? make("button", { type: "button", onclick: () => act(async () => {
    await ask("DELETE", "/api/owner");
    kept("key", null);
  }) }, "Give it back") : owner ? null : make("button", { type: "button", onclick: () => act(claim) }, "Claim it");
  ownerBar.replaceChildren(make("span", {}, who), ...(button ? [button] : []));
}

async function claim() {
  const name = await question("Claim the probe", "Others then see who has it. It is free again when you give it back, or this page is closed.", "Your name", kept("name") ?? "");
  if (name === null) return;
  const owner = await ask("POST", "/api/owner", { name });
  kept("name", owner.name);
  kept("claim", String(owner.claim));
  kept("key", owner.key);
  if (!(page.state?.claims >= owner.claim)) page.state = { ...page.state, owner: { name: owner.name, since: new Date().toISOString() }, claims: owner.claim };
  if (page.socket?.readyState === WebSocket.OPEN) page.socket.send(JSON.stringify({ key: owner.key }));
}

/** Do something, and show what keeps it from being done. */
async function act(doing) {
  try {
    await doing();
    document.getElementById("fault")?.remove();
  } catch (error) {
    document.getElementById("fault")?.remove();
    main.prepend(make("p", { id: "fault", class: "error card", role: "alert" }, error.message));
  }
  shownOwner = null;
  showStatus();
}

// Views ------------------------------------------------------------------------------------------

const shown = {
  now() {
    const run = page.run;
    if (!run) return [aboutProbe(), make("section", { class: "card" }, make("h2", {}, "Nothing runs"), make("p", {}, "Start something, or look at ", make("a", { href: "#results" }, "results"), "."), make("p", { class: "buttons" }, make("a", { href: "#start" }, "Start…")))];
    draw();
    return [make("div", { id: "end" }), page.view?.element ?? make("p", {}, run.kind), aboutProbe("details")];
  },

  async start(kind) {
    page.kinds ??= await ask("GET", "/api/kinds");
    const parts = page.state?.probe.parts;
    const cards = page.kinds.map((one) => {
      const has = !parts || one.needs.some((part) => parts.includes(part));
      return make("section", { class: "card" }, make("h2", {}, has ? make("a", { href: `#start/${one.name}` }, one.title) : one.title), make("p", {}, one.about),
        has ? null : make("p", { class: "soft" }, `This probe was built without the part ${one.needs.join(" or ")}; preset ${one.presets.join(" or ")} has it.`));
    });
    const chosen = page.kinds.find((one) => one.name === kind);
    return chosen ? [formOf(chosen)] : [make("div", { class: "cards" }, ...cards)];
  },

  async results() {
    const found = await ask("GET", "/api/runs");
    const rows = found.map((one) => make("tr", {}, make("td", {}, new Date(one.since).toLocaleString()), make("td", { class: "text" }, ...links(one)), make("td", { class: "text" }, one.kind),
      make("td", { class: "text" }, one.name), make("td", { class: "text" }, one.owner), make("td", { class: "text" }, one.end)));
    const heads = ["When", "Files", "Kind", "What", "Whose", "End"].map((one) => make("th", { scope: "col", class: "text" }, one));
    return [make("section", { class: "card" }, make("h2", {}, "Results"), found.length ? make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Results" },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows))) : make("p", {}, "There are none yet."))];
  },

  async api() {
    const api = await ask("GET", "/openapi.json");
    const rows = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) =>
      make("tr", {}, make("td", {}, make("code", {}, `${method.toUpperCase()} ${path}`)), make("td", { class: "text" }, one.summary),
        make("td", { class: "text" }, one.parameters ? "owner's key" : ""))));
    return [make("section", { class: "card" }, make("h2", {}, `API, version ${api.info.version}`), make("p", {}, api.info.description, " The whole description: ", make("a", { href: "/openapi.json" }, "openapi.json"), ". For Prometheus: ", make("a", { href: "/metrics" }, "metrics"), "."),
      make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Endpoints" }, make("table", {}, make("thead", {}, make("tr", {}, ...["Endpoint", "What it does", "Needs"].map((one) => make("th", { scope: "col", class: "text" }, one)))), make("tbody", {}, ...rows))))];
  },
};

const FILE_WORDS = { "report.html": "report", "result.json": "JSON", "document.yaml": "document", "capture.pcapng": "pcapng", "trials.jsonl": "trials" };
const links = (one) => Object.keys(FILE_WORDS).filter((name) => one.files.includes(name)).flatMap((name) => [make("a", { href: `/r/${one.number}/${name}`, target: name === "report.html" ? "_blank" : null, rel: "noopener" }, FILE_WORDS[name]), " "]);

function aboutProbe(tag = "section") {
  const probe = page.state?.probe, facts = { URL: probe?.url ?? DASH, parts: (probe?.parts ?? []).join(", ") };
  for (const [name, value] of Object.entries(probe?.facts ?? {})) if (!(name in facts) && name !== "url") facts[name.replaceAll("_", " ")] = value;
  const head = tag === "section" ? make("h2", {}, "Probe") : make("summary", {}, "Probe");
  return make(tag, { class: "card" }, head, make("dl", {}, ...Object.entries(facts).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, String(value) || DASH)))));
}

function showEnd() {
  const place = document.getElementById("end"), line = page.result;
  if (!place || !line) return;
  if (page.shownEnd !== line && line.state === "ended") page.view?.end?.(line);
  page.shownEnd = line;
  ask("GET", "/api/runs").then((found) => {
    const one = found.find((each) => each.number === line.run);
    const address = `${location.origin}/r/${line.run}`;
    const copy = make("button", { type: "button", onclick: async (event) => {
      await navigator.clipboard?.writeText(address).catch(() => {});
      event.target.textContent = "Copied";
    } }, "Copy its link");
    place.replaceChildren(make("section", { class: "card", role: "status" }, make("h2", { class: line.state === "failed" ? "bad" : "" }, line.state === "failed" ? "It failed" : "It has ended"), make("p", { class: line.state === "failed" ? "error" : "" }, line.why),
      ...(line.notes ?? []).map((note) => make("p", { class: "soft" }, note)),
      one ? make("p", { class: "buttons" }, ...links(one), copy, make("a", { href: `/r/${line.run}` }, "The result")) : null));
  }, () => {});
}

function formOf(kind) {
  const before = page.forms[kind.name] ??= { options: {}, document: structuredClone(Object.values(kind.examples)[0]?.document ?? {}), text: null };
  const said = make("div", { role: "status" }), options = new Form(kind.options, before.options, "options");
  const place = make("div");
  let form = null, area = null;
  const asText = (text) => {
    before.text = text;
    area = make("textarea", { "aria-label": `${kind.title}, as YAML or JSON`, spellcheck: "false", oninput: () => { before.text = area.value; } });
    area.value = text;
    form = null;
    place.replaceChildren(area);
  };
  const asForm = (value) => {
    before.text = null;
    before.document = value;
    form = new Form(kind.schema, value, "the document");
    area = null;
    place.replaceChildren(form.element);
  };
  const choose = Object.entries(kind.examples).length ? make("select", { "aria-label": "Begin with an example", onchange: (event) => {
    const one = kind.examples[event.target.value];
    if (!one) return;
    if (area) asText(one.text);
    else asForm(structuredClone(one.document));
  } }, make("option", { value: "" }, "Begin with an example…"), ...Object.keys(kind.examples).map((name) => make("option", { value: name }, name))) : null;
  const change = make("button", { type: "button", onclick: () => {
    if (form) asText(JSON.stringify(before.document, null, 1));
    else {
      try {
        asForm(JSON.parse(area.value));
      } catch {
        said.replaceChildren(make("p", { class: "error", role: "alert" }, "This text is not JSON, so it can't become a form: start it as it is, or begin with an example."));
        return;
      }
    }
    change.textContent = form ? "Edit as text" : "Edit as a form";
  } }, "Edit as text");
  if (kind.schema) {
    if (before.text === null) asForm(before.document);
    else asText(before.text);
    change.textContent = form ? "Edit as text" : "Edit as a form";
  }
  const upload = kind.options.properties.file ? make("p", {}, make("label", { for: "upload" }, "Capture, pcap or pcapng: "), make("input", { id: "upload", type: "file", accept: ".pcap,.pcapng,.gz,.xz,.zst,.lz4,.bz2", onchange: (event) => act(async () => {
    const file = event.target.files[0];
    const done = await ask("POST", "/api/captures", file);
    Object.assign(options.value, { file: done.file, name: file.name });
    options.draw();
    said.replaceChildren(make("p", { class: "good" }, `${file.name}: ${number(done.octets)} octets are there`));
  }) })) : null;
  const send = async (path) => {
    const body = { kind: kind.name, options: options.value, document: kind.schema ? before.text ?? before.document : null };
    [form, options].forEach((one) => one?.forget());
    area?.removeAttribute("aria-invalid");
    try {
      const done = await ask("POST", path, body);
      if (path === "/api/check") said.replaceChildren(make("p", { class: "good" }, "It can be run."), ...done.said.map((line) => make("p", {}, line)));
      else location.hash = "#now";
    } catch (error) {
      const where = error.part === "options" ? options : form;
      const isShown = error.part && where?.say(error.path ?? "", error.message);
      said.replaceChildren(make("p", { class: "error", role: isShown ? null : "alert" }, error.line && area && error.part === "document" ? `Line ${error.line}: ${error.message}` : error.message));
      if (area && error.part === "document") {
        area.setAttribute("aria-invalid", "true");
        const lines = area.value.split("\n"), from = lines.slice(0, error.line - 1).join("\n").length + (error.line > 1);
        area.focus();
        area.setSelectionRange(from, from + (lines[error.line - 1]?.length ?? 0));
      }
    }
  };
  return make("form", { class: "card", novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    act(async () => {
      if (!kept("key")) await claim();
      if (kept("key")) await send("/api/runs");
    });
  } }, make("h2", {}, kind.title), make("p", {}, kind.about, " ", make("a", { href: "#start" }, "Something else…")), upload,
  kind.schema ? make("p", { class: "buttons" }, choose, change) : null, kind.schema ? make("fieldset", {}, make("legend", {}, "Document"), place) : null,
  make("fieldset", {}, make("legend", {}, "Options"), options.element), said,
  make("p", { class: "buttons" }, make("button", { class: "main" }, "Start"), make("button", { type: "button", onclick: () => send("/api/check") }, "Check")));
}

let showing = 0;
async function show() {
  const [name, more] = (location.hash.slice(1) || "now").split("/"), mine = ++showing;
  document.querySelectorAll("nav a").forEach((one) => one.hash === `#${name}` ? one.setAttribute("aria-current", "page") : one.removeAttribute("aria-current"));
  try {
    const parts = await (shown[name] ?? shown.now)(more);
    if (mine !== showing) return;
    main.replaceChildren(...parts);
  } catch (error) {
    main.replaceChildren(make("p", { class: "error card", role: "alert" }, error.message));
  }
  if (name === "now") {
    draw();
    showEnd();
  }
}
addEventListener("hashchange", () => {
  show();
  main.focus({ preventScroll: true });
});
setInterval(showStatus, 1000);
ask("GET", "/api/state").then((state) => {
  take(state);
  show();
  connect();
}, (error) => {
  page.error = error.message;
  showStatus();
  connect();
});
