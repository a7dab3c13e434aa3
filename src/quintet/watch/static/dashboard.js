"use strict";
// The dashboard. Whatever agents wrote reaches the page as text nodes only; there is no innerHTML in this file.

const $ = (id) => document.getElementById(id);
const NAMES = { analyst: "Analyst", peer_analyst: "Analyst's peer", programmer: "Programmer", peer_programmer: "Programmer's peer", tester: "Tester" };
const TABS = [["reply", "Response"], ["prompt", "Prompt as sent"], ["left", "Left out"]];
const view = {
  run: null, wanted: "latest", chosen: -1, tab: "reply", sheet: null, terminal: "", follow: true,
  statuses: {}, screens: {}, skew: 0, stamp: {},
};

// -- small things

function h(tag, attributes, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}
const now = () => Date.now() / 1000 + view.skew;
const two = (number) => String(number).padStart(2, "0");
function clock(seconds) {
  const s = Math.max(Math.round(seconds), 0);
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}`;
}
function spell(seconds) {
  const s = Math.max(Math.round(seconds), 0);
  if (s < 60) return `${s} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min ${two(s % 60)} s` : `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
}
function count(number) {
  for (const [size, letter] of [[1e6, "M"], [1e3, "k"]]) if (number >= size) return `${(number / size).toFixed(number / size >= 10 ? 0 : 1)}${letter}`;
  return String(number);
}
const money = (cost) => (cost >= 1 ? cost.toFixed(2) : cost.toFixed(4));
const hour = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const mood = (turn) => (!turn.verdict ? "" : turn.verdict.good ? "good" : turn.kind === "review" ? "again" : "bad");

// -- the server: the token comes in the address's fragment, which no log sees, and leaves it at once

const arrived = new URLSearchParams(location.hash.slice(1)).get("token");
if (arrived) {
  sessionStorage.setItem("quintet-token", arrived);
  history.replaceState(null, "", location.pathname);
}
function headers(more) {
  const token = sessionStorage.getItem("quintet-token");
  return token ? { Authorization: `Bearer ${token}`, ...more } : { ...more };
}
async function get(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (answer.status === 401) notice("This page needs its token: open the address that `quintet dashboard` prints.");
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
const notice = (text) => Object.assign($("notice"), { textContent: text, hidden: !text });
const linked = (state, words) => Object.assign($("link"), { className: `link ${state}`, textContent: words });
async function listen() {
  let pause = 500, last = "";
  for (;;) {
    try {
      const answer = await fetch("/events", { headers: headers(last ? { "Last-Event-ID": last } : {}), cache: "no-store" });
      if (answer.status === 401) { linked("lost", "no token"); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      linked("live", "live");
      pause = 500;
      load();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const frames = (rest + part.value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) last = take(frame) || last;
      }
    } catch { /* the server is away; it is asked again */ }
    linked("lost", pause < 4000 ? "the server is away; trying again" : "the server is away; quintet dashboard shows every run");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5000);
  }
}
function take(frame) {
  const fields = Object.fromEntries(frame.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  if (!fields.data) return "";
  const data = JSON.parse(fields.data);
  if (fields.event === "snapshot") for (const item of data.terminals) view.statuses[item.terminal] = item.status;
  if (fields.event === "status") { view.statuses[data.terminal] = data.status; drawPipeline(); }
  if (fields.event === "output") fetchScreen(data.terminal);
  if (fields.event === "journal") later("load", load, 60);
  return fields.id;
}
function later(name, work, milliseconds) {
  if (view.stamp[name]) return;
  view.stamp[name] = setTimeout(() => { delete view.stamp[name]; work(); }, milliseconds);
}

// -- the run

async function load() {
  try {
    const wanted = view.wanted, list = await get("/watch/runs");
    if (!list.runs.length) { $("headline").textContent = "No run yet"; $("task").textContent = `quintet run starts one in ${list.projects.join(", ")}`; return; }
    const run = await get(`/watch/runs/${encodeURIComponent(wanted)}`);
    if (wanted !== view.wanted) return;
    const other = !view.run || view.run.id !== run.id;
    view.skew = run.now - Date.now() / 1000;
    view.run = run;
    if (other) { view.sheet = null; view.chosen = -1; view.screens = {}; $("screens").replaceChildren(); }
    draw(); drawRuns(list.runs);
    if (other || view.chosen < 0) choose(newest(run));
    else refresh();
    for (const { id } of Object.values(run.terminals)) if (other || !(id in view.statuses)) askStatus(id);
  } catch (error) { console.debug(String(error)); }
}
const newest = (run) => Math.max(run.handoffs.map((turn) => turn.taken !== null).lastIndexOf(true), 0);
async function askStatus(id) {
  try { view.statuses[id] = (await get(`/terminals/${id}`)).status; } catch { view.statuses[id] = "gone"; }
  drawPipeline();
}
function draw() {
  const run = view.run, turn = run.current === null ? null : run.handoffs[run.current];
  document.title = `${run.headline} · Quintet`;
  $("headline").textContent = turn && run.status === "RUNNING" ? `Round ${run.round}, ${NAMES[turn.role].toLowerCase()}, cycle ${turn.cycle}` : run.headline;
  $("headline").className = { PASS: "good", FAIL: "bad", STOPPED: "again" }[run.status] || "";
  $("task").textContent = run.title;
  notice(run.asking ? `The ${NAMES[run.asking].toLowerCase()} asks for permission. Answer it in its terminal: quintet attach ${run.asking}`
    : run.status === "STOPPED" ? `Stopped: ${run.reason}. Start it again to go on.` : "");
  drawFacts(); drawPipeline(); drawTimeline(); drawTerminals(); drawTurns(); drawTokens();
  $("journal").replaceChildren(...run.journal.slice().reverse().map((line) => h("li", {}, h("time", {}, hour(line.at)), h("span", {}, line.text))));
}
function drawFacts() {
  const run = view.run;
  const facts = [["Project", run.wd], ["Run", run.id], ["At work for", clock(run.status === "RUNNING" ? run.seconds + now() - run.ended : run.seconds)],
    ["Tokens", run.tokens ? count(run.tokens.total) + (run.tokens.cost === null ? "" : `, cost ${money(run.tokens.cost)}`) : "not told"]];
  if (run.remarks.length) facts.push(["Warnings", String(run.remarks.length)]);
  $("facts").replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
const WORDS = { processing: "at work", waiting_user_answer: "asks for permission", error: "has ended", unknown: "starting", gone: "terminal is closed" };
function standing(role) {
  const run = view.run, turn = run.current === null ? null : run.handoffs[run.current];
  const id = (run.terminals[role.name] || {}).id;
  const status = id ? view.statuses[id] : "";
  const last = run.handoffs.filter((item) => item.role === role.name && item.taken !== null).pop();
  if (turn && turn.role === role.name && run.status === "RUNNING") return WORDS[status] && status !== "unknown" ? WORDS[status] : "at work";
  if (status === "error" || status === "waiting_user_answer") return WORDS[status];
  if (last && last.verdict) return (last.verdict.word || "no verdict").toLowerCase();
  return last ? "has handed over" : "waits for its turn";
}
function drawPipeline() {
  const run = view.run;
  if (!run) return;
  const turn = run.current === null || run.status !== "RUNNING" ? null : run.handoffs[run.current];
  fill($("pipeline"), run.roles.map((role, number) => {
    const mine = run.handoffs.filter((item) => item.role === role.name);
    const tokens = mine.reduce((sum, item) => sum + (item.tokens ? item.tokens.total : 0), 0);
    const at = turn && turn.role === role.name;
    const time = at ? clock(now() - turn.sent) : mine.length ? `${mine.length} turn${mine.length > 1 ? "s" : ""}` : "";
    return h("li", { class: `step ${role.kind}${at ? " now" : ""}`, "aria-current": at ? "step" : null },
      h("button", { type: "button", onclick: () => show(role.name), title: `terminal ${number + 1}`, "data-role": role.name },
        h("span", { class: "who" }, NAMES[role.name]), h("span", { class: "what" }, standing(role)),
        h("span", { class: "numbers" }, h("span", { class: "time" }, time), h("span", {}, tokens ? `${count(tokens)} tokens` : ""))));
  }));
}
/** Replace the children, and leave the keyboard's focus where it was. */
function fill(parent, children) {
  const place = [...parent.querySelectorAll("button, [tabindex]")].indexOf(document.activeElement);
  parent.replaceChildren(...children);
  if (place >= 0) [...parent.querySelectorAll("button, [tabindex]")][place]?.focus({ preventScroll: true });
}

// -- the timeline: the same picture as in the report, made to be clicked

const G = { width: 980, left: 136, right: 20, top: 30, lane: 34, bar: 16, gap: 26 };
const SHAPES = { good: "M-3.4 .2 L-1 2.8 L3.6 -2.6", bad: "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6", again: "M2.8 -1.6 A3.2 3.2 0 1 0 3.1 1.1 M3.4 -3.6 L3 -1.2 L.6 -1.6" };
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400];
function scaleOf(run) {
  const spells = run.spells.map((pair) => pair.slice());
  if (run.status === "RUNNING") spells[spells.length - 1][1] = Math.max(now(), spells[spells.length - 1][1]);
  const total = Math.max(spells.reduce((sum, [begin, end]) => sum + end - begin, 0), 1);
  const rate = Math.max(G.width - G.left - G.right - G.gap * (spells.length - 1), 100) / total;
  const x = (at) => {
    let place = G.left;
    for (const [number, [begin, end]] of spells.entries()) {
      if (at <= end || number === spells.length - 1) return place + (Math.min(Math.max(at, begin), end) - begin) * rate;
      place += (end - begin) * rate + G.gap;
    }
    return place;
  };
  const atWork = (seconds) => {
    for (const [begin, end] of spells) { if (seconds <= end - begin) return x(begin + seconds); seconds -= end - begin; }
    return x(spells[spells.length - 1][1]);
  };
  return { spells, total, x, atWork, end: spells[spells.length - 1][1] };
}
function tickName(s) {
  if (s < 60) return `${s} s`;
  return s < 3600 ? (s % 60 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${s / 60} min`) : `${s / 3600} h`;
}
function drawTimeline() {
  const run = view.run, scale = scaleOf(run), bottom = G.top + G.lane * run.roles.length, parts = [];
  const y = (number) => G.top + G.lane * number + G.lane / 2;
  run.roles.forEach((role, number) => parts.push(h("svg:text", { class: "lane-name", x: 0, y: y(number) + 4 }, NAMES[role.name]),
    h("svg:line", { class: "lane", x1: G.left, x2: scale.x(scale.end), y1: y(number), y2: y(number) })));
  scale.spells.slice(1).forEach(([begin], number) => {
    const end = scale.spells[number][1], x = scale.x(end), middle = x + G.gap / 2, half = (G.top + bottom) / 2;
    parts.push(h("svg:rect", { class: "stop", x, y: G.top, width: G.gap, height: bottom - G.top }, h("svg:title", {}, `stopped for ${spell(begin - end)}`)),
      h("svg:text", { class: "stop-name", x: middle, y: half, dy: 4, transform: `rotate(-90 ${middle} ${half})` }, "stopped"));
  });
  for (const number of new Set(run.handoffs.map((turn) => turn.round))) {
    const x = scale.x(run.handoffs.find((turn) => turn.round === number).sent);
    parts.push(h("svg:line", { class: "round", x1: x, x2: x, y1: G.top - 18, y2: bottom }), h("svg:text", { class: "round-name", x: x + 6, y: G.top - 8 }, `Round ${number}`));
  }
  const step = STEPS.find((size) => scale.total / size <= 9) || scale.total / 9;
  for (let s = 0; s <= scale.total; s += step) {
    const x = scale.atWork(s);
    parts.push(h("svg:line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 5 }), h("svg:text", { class: "tick-name", x, y: bottom + 20 }, tickName(s)));
  }
  run.handoffs.forEach((turn, number) => parts.push(bar(run, turn, number, scale, y)));
  const label = `Timeline: ${run.handoffs.length} turns of five agents`;
  fill($("timeline"), [h("svg:svg", { class: "timeline", viewBox: `0 0 ${G.width} ${bottom + 30}`, role: "group", "aria-label": label }, parts)]);
}
function bar(run, turn, number, scale, y) {
  const x = scale.x(turn.sent), end = turn.taken === null ? scale.end : turn.taken, width = Math.max(scale.x(end) - x, 2);
  const middle = y(run.roles.findIndex((role) => role.name === turn.role));
  const words = `${NAMES[turn.role]}, round ${turn.round}, cycle ${turn.cycle}: ${spell(turn.taken === null ? end - turn.sent : turn.seconds)}${turn.verdict ? `, ${turn.verdict.word || "no verdict"}` : ""}`;
  const open = () => choose(number, true);
  return h("svg:g", { class: `turn${number === view.chosen ? " chosen" : ""}`, tabindex: 0, role: "button", "aria-label": words, onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
    h("svg:title", {}, words),
    h("svg:rect", { class: `bar ${turn.kind}${turn.taken === null ? " open" : ""}`, x, y: middle - G.bar / 2, width, height: G.bar, rx: 3 }),
    turn.verdict ? h("svg:g", { class: `mark ${mood(turn)}`, transform: `translate(${x + width} ${middle})` }, h("svg:circle", { r: 7.5 }), h("svg:path", { d: SHAPES[mood(turn)] })) : null);
}

// -- the terminals: pictures of panes, drawn by xterm.js; nothing that is typed here goes anywhere

function colours() {
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return { background: of("--screen"), foreground: of("--ink"), cursor: of("--work"), black: "#2b2f34", red: of("--bad"), green: of("--good"),
    yellow: of("--again"), blue: of("--work"), magenta: of("--review"), cyan: of("--test"), white: dark ? "#d8d5ce" : "#6c6f75",
    brightBlack: "#868a90", brightWhite: dark ? "#ffffff" : "#23262b" };
}
function shown() {
  const run = view.run, turn = run.current === null ? null : run.handoffs[run.current];
  if (view.follow) view.terminal = turn ? turn.role : view.terminal || (run.handoffs.length ? run.handoffs[run.handoffs.length - 1].role : run.roles[0].name);
  return view.terminal === "all" ? run.roles.map((role) => role.name) : [view.terminal];
}
function show(name, follow = false) {
  view.terminal = name;
  view.follow = follow;
  drawTerminals();
}
function drawTerminals() {
  const run = view.run;
  if (!run) return;
  const names = shown().filter((name) => run.terminals[name]);
  const tab = (name, words, key) => h("button", { type: "button", role: "tab", "aria-selected": String(view.terminal === name), "data-terminal": name, title: `key ${key}`, onclick: () => show(name) }, words);
  fill($("terminal-tabs"), [...run.roles.map((role, number) => tab(role.name, NAMES[role.name], number + 1)), tab("all", "All five", 0)]);
  $("follow").setAttribute("aria-pressed", String(view.follow));
  $("screens").className = `screens${view.terminal === "all" ? " all" : ""}`;
  const key = `${run.id} ${names.join(" ")}`;
  if ($("screens").dataset.key === key) return;
  $("screens").dataset.key = key;
  for (const screen of Object.values(view.screens)) screen.terminal.dispose();
  view.screens = {};
  $("screens").replaceChildren(...(names.length ? names.map((name) => screenFor(name)) : [h("div", { class: "screen empty" }, "The terminals of this run are not there.")]));
  for (const name of names) fetchScreen(run.terminals[name].id, true);
}
function screenFor(name) {
  const place = h("div", {}), words = h("span", {}, ""), id = view.run.terminals[name].id;
  const terminal = new Terminal({ disableStdin: true, cursorBlink: false, cursorInactiveStyle: "none", scrollback: 0, fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize: 12, theme: colours(), screenReaderMode: true });
  view.screens[id] = { name, terminal, place, words, opened: false, rows: 0 };
  return h("div", { class: "screen", "data-screen": name }, h("h3", {}, NAMES[name], words), place);
}
function fetchScreen(id, always = false) {
  if (!view.screens[id] || (document.hidden && !always)) return;
  later(`screen ${id}`, async () => {
    const screen = view.screens[id];
    if (!screen) return;
    try { paint(screen, await get(`/terminals/${id}/screen`)); } catch { if (!screen.opened) screen.place.textContent = "This terminal is not there any more."; }
  }, always ? 0 : 150);
}
function paint(screen, seen) {
  const lines = seen.text.split("\n"), terminal = screen.terminal;
  while (lines.length && !lines[lines.length - 1].trim()) lines.pop();
  screen.rows = Math.min(Math.max(screen.rows, lines.length + 1, view.terminal === "all" ? 24 : 18), Math.max(seen.rows, 1));
  if (!screen.opened) { screen.place.replaceChildren(); terminal.open(screen.place); screen.opened = true; }
  const room = screen.place.clientWidth, cell = room / seen.columns;
  terminal.options.fontSize = Math.min(Math.max(Math.floor((cell / 0.602) * 10) / 10, view.terminal === "all" ? 3 : 7), 14);
  terminal.resize(seen.columns, screen.rows);
  screen.words.textContent = WORDS[view.statuses[view.run.terminals[screen.name].id]] || "";
  const from = Math.max(lines.length - screen.rows, 0);
  terminal.write(`\x1b[0m\x1b[2J\x1b[H${lines.slice(from).join("\r\n")}\x1b[0m${seen.cursor ? `\x1b[${Math.max(seen.cursor[1] - from, 0) + 1};${seen.cursor[0] + 1}H` : ""}`);
}

// -- the handoffs

function drawTurns() {
  const run = view.run, items = [];
  run.handoffs.forEach((turn, number) => {
    if (!number || run.handoffs[number - 1].round !== turn.round) items.push(h("li", { class: "round-head" }, `Round ${turn.round}`));
    const said = turn.verdict ? turn.verdict.word || "no verdict" : turn.taken === null ? "at work" : "";
    items.push(h("li", {}, h("button", { type: "button", "data-turn": number, "aria-current": String(number === view.chosen), onclick: () => choose(number, true) },
      h("span", { class: `pip ${turn.kind}` }), h("span", {}, NAMES[turn.role], h("span", { class: "more" }, `  cycle ${turn.cycle}${turn.again ? ", asked again" : ""}`)),
      h("span", { class: `said ${mood(turn)}` }, said))));
  });
  fill($("turns"), items.length ? items : [h("li", { class: "quiet" }, "None yet.")]);
}
async function choose(number, look = false) {
  const run = view.run;
  if (!run || !run.handoffs[number]) return;
  view.chosen = number;
  drawTurns(); drawTimeline();
  const list = $("turns"), item = list.querySelector("[aria-current=true]");
  if (item) list.scrollTop = Math.min(Math.max(list.scrollTop, item.offsetTop + item.offsetHeight - list.clientHeight), item.offsetTop);
  await refresh();
  if (look) $("sheet").scrollIntoView({ block: "nearest", behavior: "smooth" });
}
async function refresh() {
  const run = view.run, number = view.chosen, turn = run.handoffs[number];
  const key = `${run.id} ${number} ${turn ? turn.taken : ""} ${turn && turn.verdict ? turn.verdict.word : ""}`;
  if (!turn || (view.sheet && view.sheet.key === key)) return;
  try { view.sheet = { key, turn, ...(await get(`/watch/runs/${encodeURIComponent(run.id)}/handoffs/${number}`)) }; } catch { return; }
  drawSheet();
}
function drawSheet() {
  const sheet = view.sheet, turn = sheet.turn, verdict = turn.verdict;
  const size = turn.tokens ? `, ${turn.tokens.input.toLocaleString()} tokens in, ${turn.tokens.output.toLocaleString()} out` : "";
  const tabs = h("div", { class: "tabs", role: "tablist" }, TABS.map(([name, words]) => h("button", { type: "button", role: "tab", "data-tab": name, "aria-selected": String(view.tab === name), onclick: () => read(name) },
    name === "left" && sheet.saved ? `${words} (${count(sheet.saved)} bytes)` : words)));
  fill($("sheet"), [
    h("h3", {}, `${NAMES[turn.role]}, round ${turn.round}, cycle ${turn.cycle}`),
    h("p", { class: "meta" }, `${hour(turn.sent)}${turn.taken === null ? ", no reply yet" : `, replied after ${spell(turn.seconds)}`}${size}${turn.reminders ? `, reminded ${turn.reminders}×` : ""}${turn.source === "screen" ? ", read from its screen" : ""}`),
    verdict ? h("div", { class: "judgement" }, h("strong", { class: mood(turn) }, verdict.word || "No verdict"), h("span", { class: "why" }, verdict.reason === verdict.word.toLowerCase() ? "with evidence of" : verdict.reason),
      verdict.command ? h("p", {}, verdict.command) : null, verdict.evidence.length ? h("p", { class: "chips" }, verdict.evidence.map((word) => h("span", {}, word))) : null) : null,
    tabs, sheetBody(sheet)]);
}
function sheetBody(sheet) {
  if (view.tab !== "left") return sheet[view.tab] ? h("pre", { id: "text" }, sheet[view.tab]) : h("p", { class: "quiet" }, view.tab === "reply" ? "There is no response yet." : "The prompt is not in the archive.");
  const parts = sheet.shortened.map((part) => h("div", { class: "lost-part" },
    h("p", {}, part.removed.length ? `Of ${part.what} ${part.saved.toLocaleString()} of ${part.size.toLocaleString()} bytes stayed behind:` : `Of ${part.what} nothing was left out.`),
    part.removed.length ? h("pre", { class: "gone" }, part.removed.join("\n")) : null));
  return h("div", { id: "text" }, parts.length ? parts : h("p", { class: "quiet" }, "This prompt carries nothing that could be shortened."));
}
function read(tab) {
  view.tab = tab;
  if (view.sheet) drawSheet();
}

// -- tokens and runs

function drawTokens() {
  const run = view.run, rounds = [...new Set(run.handoffs.map((turn) => turn.round))];
  const sum = (turns) => turns.reduce((total, turn) => total + (turn.tokens ? turn.tokens.total : 0), 0);
  const cell = (turns) => h("td", {}, sum(turns) ? count(sum(turns)) : "–");
  const cells = (turns) => [...rounds.map((number) => cell(turns.filter((turn) => turn.round === number))), cell(turns)];
  if (!run.tokens) { $("tokens").replaceChildren(h("p", { class: "quiet" }, "The agents' records tell of none.")); return; }
  const table = h("table", { class: "tokens" }, h("thead", {}, h("tr", {}, h("th", {}, ""), rounds.map((number) => h("th", {}, `Round ${number}`)), h("th", {}, "Run"))),
    h("tbody", {}, run.roles.map((role) => h("tr", {}, h("td", {}, NAMES[role.name]), cells(run.handoffs.filter((turn) => turn.role === role.name)))), h("tr", {}, h("td", {}, "All"), cells(run.handoffs))));
  $("tokens").replaceChildren(h("div", { class: "wide" }, table));
}
function drawRuns(runs) {
  fill($("runs"), runs.map((run) => h("tr", { class: view.run && run.id === view.run.id ? "chosen" : "" },
    h("td", {}, h("button", { type: "button", "data-run": run.id, onclick: () => { view.wanted = run.id; load(); scrollTo({ top: 0 }); } }, run.id)),
    h("td", { class: { PASS: "good", FAIL: "bad", STOPPED: "again" }[run.status] || "" }, run.headline), h("td", { title: run.title }, run.title), h("td", {}, spell(run.seconds)),
    h("td", {}, run.rounds), h("td", {}, run.tokens === null ? "" : count(run.tokens)))));
}

// -- keys and time

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.run || $("help").open) return;
  const roles = view.run.roles, key = event.key;
  if (/^[1-5]$/.test(key)) show(roles[Number(key) - 1].name);
  else if (key === "0") show("all");
  else if (key === "f") show("", true);
  else if (key === "j" || key === "k") choose(Math.min(Math.max(view.chosen + (key === "j" ? 1 : -1), 0), view.run.handoffs.length - 1), true);
  else if (key === "r" || key === "p" || key === "l") read({ r: "reply", p: "prompt", l: "left" }[key]);
  else if (key === "?") $("help").showModal();
  else return;
  event.preventDefault();
  if (/^[0-5f]$/.test(key)) $("terminals-title").scrollIntoView({ block: "nearest", behavior: "smooth" });
});
$("follow").addEventListener("click", () => show("", true));
$("help-button").addEventListener("click", () => $("help").showModal());
$("help").addEventListener("click", (event) => { if (event.target === $("help")) $("help").close(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const screen of Object.values(view.screens)) screen.terminal.options.theme = colours(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) for (const id of Object.keys(view.screens)) fetchScreen(id); });
addEventListener("resize", () => { for (const id of Object.keys(view.screens)) fetchScreen(id); });
setInterval(() => {
  if (!view.run || view.run.status !== "RUNNING" || document.hidden) return;
  drawFacts();
  const turn = view.run.current === null ? null : view.run.handoffs[view.run.current];
  if (turn) { const time = document.querySelector(".step.now .time"); if (time) time.textContent = clock(now() - turn.sent); drawTimeline(); }
}, 1000);
listen();
