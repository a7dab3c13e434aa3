"use strict";
// The dashboard. Whatever agents wrote reaches the page as text nodes only; there is no innerHTML in this file.

const TABS = [["reply", "Response"], ["actions", "What it did"], ["output", "Output of the checks"], ["prompt", "Prompt as sent"], ["left", "Left out of the prompt"]];
const TIMELINE_MILLISECONDS = 10000; // each is drawn by the server; what happens is shown at once all the same
const ELSEWHERE_MILLISECONDS = 10000; // the server asks the remote no more often
const STATUS_CLASSES = { PASS: "good", FAIL: "bad", STOPPED: "again", GONE: "again" };
const view = {
  run: null, wanted: "latest", task: "", chosen: -1, tab: "reply", sheet: null, terminal: "", follow: true,
  statuses: {}, screens: {}, timeline: null, diff: { key: "", text: "", folds: {} }, skew: 0, stamp: {}, lasting: true, program: "quintet", control: false, lost: 0,
};

// -- small things

/** The time; it stands still while the server does not answer. */
const now = () => (view.lost || Date.now() / 1000) + view.skew;
/** How long a turn has taken, without the time in which the run was stopped. */
const worked = (turn) => turn.seconds + (turn.taken === null && view.run.status === "RUNNING" ? Math.max(now() - view.run.ended, 0) : 0);
const verdictClass = (turn) => (turn.verdict ? turn.verdict.kind : "");

// -- the server

if (given.get("run")) view.wanted = given.get("run");
if (given.get("task")) view.task = given.get("task");
async function listen() {
  let pause = 500, last = "";
  for (;;) {
    try {
      const answer = await fetch("/events", { headers: headers(last ? { "Last-Event-ID": last } : {}), cache: "no-store" });
      if (answer.status === 401) { linked("lost", "no token"); askForToken(); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      linked("live", "live");
      [pause, view.lost] = [500, 0];
      load();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const frames = (rest + part.value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) last = take(frame) || last;
      }
    } catch { /* the server does not answer; try again */ }
    view.lost = view.lost || Date.now() / 1000;
    linked("lost", "no connection; trying again");
    drawNotice();
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
    if (view.task && !(await findTask())) return;
    const wanted = view.wanted, list = await get("/watch/runs");
    if (!list.runs.length && !view.task) { $("headline").textContent = "No run yet"; $("task").textContent = `Start one with ${list.program} run in ${list.projects.join(", ")}`; return; }
    const run = await get(`/watch/runs/${encodeURIComponent(wanted)}`);
    if (wanted !== view.wanted) return;
    const other = !view.run || view.run.id !== run.id;
    view.skew = run.now - Date.now() / 1000;
    [view.run, view.lasting, view.program, view.control] = [run, list.lasting, list.program, list.control];
    loadTimeline(); loadDiff();
    if (other) { view.sheet = null; view.chosen = -1; view.screens = {}; $("screens").replaceChildren(); }
    draw(); drawRuns(list.runs);
    if (other || view.chosen < 0) choose(newest(run));
    else refresh();
    if (run.elsewhere && run.status === "RUNNING") later("load", load, ELSEWHERE_MILLISECONDS);
    for (const { id } of Object.values(run.terminals)) if (other || !(id in view.statuses)) askStatus(id);
  } catch (error) { console.debug(String(error)); }
}
/** Find the run of the task that the page is about; the server brings a copy of it, where it is on another machine. */
async function findTask() {
  const answer = await fetch(`/watch/queue/${encodeURIComponent(view.task)}`, { headers: headers(), cache: "no-store" });
  const found = await answer.json();
  if (answer.ok) { view.wanted = found.run; return true; }
  [$("headline").textContent, $("task").textContent] = ["No run yet", view.task];
  notice([String(found.detail)]);
  later("load", load, ELSEWHERE_MILLISECONDS);
  return false;
}
const newest = (run) => Math.max(run.handoffs.map((turn) => turn.taken !== null).lastIndexOf(true), 0);
async function askStatus(id) {
  try { view.statuses[id] = (await get(`/terminals/${id}`)).status; } catch { view.statuses[id] = "gone"; }
  drawPipeline();
}
function draw() {
  const run = view.run, turn = run.current === null ? null : run.handoffs[run.current];
  document.title = `${run.headline} · Quintet`;
  $("headline").textContent = turn && run.status === "RUNNING" ? `Round ${run.round}, ${named(turn.role).toLowerCase()}, cycle ${turn.cycle}` : run.headline;
  $("headline").className = STATUS_CLASSES[run.status] || "";
  $("task").textContent = run.title;
  drawNotice(); drawActions(); drawFacts(); drawPipeline(); drawTerminals(); drawTurns(); drawTokens();
  $("warnings-part").hidden = !run.warnings.length;
  $("warnings").replaceChildren(...run.warnings.map((warning) => h("li", {}, h("time", {}, hour(warning.at)), h("span", { class: "kind" }, warning.kind), h("span", {}, warning.text))));
  $("journal").replaceChildren(...run.journal.slice().reverse().map((line) => h("li", {}, h("time", {}, hour(line.at)), h("span", {}, line.text))));
}
function drawNotice() {
  const run = view.run;
  document.body.classList.toggle("away", Boolean(view.lost));
  if (!run) return;
  const board = code(`${view.program} dashboard --wd ${run.project}`);
  if (view.lost && view.lasting) notice(["The server of this page does not answer, so the page may be out of date. Start it again, and the page reconnects: ", board]);
  else if (view.lost) notice(["This page came from the run's own server, which has ended: the run has ended, or was resumed with another server. The page may be out of date."],
    ["All runs, at a permanent address: ", board]);
  else if (run.elsewhere) notice([`This run is on ${run.elsewhere}. The page shows what its last checkpoint says.`]);
  else if (run.asking && run.status === "RUNNING") notice([`The ${named(run.asking).toLowerCase()} asks for permission. Answer it in its terminal: `, code(`${view.program} attach ${run.asking}`)]);
  else if (run.waiting && run.status === "RUNNING") notice([run.waiting]);
  else notice(...run.advice);
}
// -- what a person can tell the run; each choice is asked for once more before it is sent

const ACTIONS = {
  approve: { name: "Approve", words: "The run goes on.", main: true },
  reject: { name: "Send back", words: "Say what has to be different. It counts above any review.", text: true },
  note: { name: "Leave a note", words: "It travels with the next prompt, once.", text: true, role: true },
  pause: { name: "Pause", words: "The run stops after the current turn. It is started again from a terminal." },
  stop: { name: "Stop", words: "The run stops now, and its terminals end. It can be gone on with later." },
};
function drawActions() {
  const run = view.run, names = [...(run.approval ? ["approve", "reject"] : []), ...(run.status === "RUNNING" ? ["note", "pause", "stop"] : [])];
  $("actions").hidden = !view.control || !names.length;
  $("rights").textContent = view.control ? "From this page you can tell a run what to do." : "This page is read-only.";
  fill($("actions"), names.map((name) => h("button", { type: "button", "data-action": name, class: ACTIONS[name].main ? "main" : "", onclick: () => ask(name) }, ACTIONS[name].name)));
}
function ask(name) {
  const action = ACTIONS[name], step = view.run.approval, run = view.run.id;
  $("ask-title").textContent = `${action.name}?`;
  $("ask-words").textContent = `${action.words} (${run})`;
  $("ask-text").hidden = !action.text;
  $("ask-role-line").hidden = !action.role;
  $("ask-role").replaceChildren(h("option", { value: "" }, "whoever is asked next"), ...view.run.roles.map((role) => h("option", { value: role.name }, named(role.name))));
  $("ask-text").value = $("ask-error").textContent = "";
  $("ask-yes").textContent = action.name;
  $("ask-yes").onclick = () => act(run, { action: name, text: $("ask-text").value, role: $("ask-role").value, step });
  $("ask").showModal();
}
async function act(run, wish) {
  $("ask-yes").disabled = true;
  let answer = { detail: "The server does not answer; try again." };
  try {
    const response = await fetch(`/control/runs/${encodeURIComponent(run)}`, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body: JSON.stringify(wish) });
    answer = await response.json();
  } catch { /* said below */ }
  $("ask-yes").disabled = false;
  if (!answer.told) { $("ask-error").textContent = String(answer.detail); return; }
  $("ask").close();
  load();
}
function drawFacts() {
  const run = view.run;
  const facts = [["Project", run.project], ...(run.branch ? [["Branch", run.branch]] : []), ["Run", run.id], ["At work for", clock(run.status === "RUNNING" ? run.seconds + now() - run.ended : run.seconds)],
    ["Tokens", run.tokens ? count(run.tokens.total) + priced(run.tokens) : "unknown"]];
  const confirmed = Object.entries(run.confirmed_by).map(([title, code]) => `${title} (exit code ${code})`).join(", ");
  if (run.rests_on) facts.push(["The PASS", h("span", { class: confirmed ? "" : "again" }, confirmed ? `verified by ${confirmed}` : "on the tester's word alone")]);
  const failed = run.checks.filter((check) => check.exit_code && check.when !== "start");
  if (failed.length) facts.push(["Failed checks", failed.map((check) => `${check.check} in round ${check.round}`).join(", ")]);
  if (run.lost_tests.length) facts.push(["Tests", h("span", { title: run.lost_tests.slice(1).join("\n") }, run.lost_tests[0])]);
  if (run.warnings.length) facts.push(["Warnings", h("a", { href: "#warnings-part" }, String(run.warnings.length))]);
  $("facts").replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
/** The cost, and how many tokens have no price. */
function priced(tokens) {
  if (tokens.cost === null) return "";
  return tokens.unpriced ? `, cost at least ${money(tokens.cost)} (${count(tokens.unpriced)} tokens have no price)` : `, cost ${money(tokens.cost)}`;
}
const WORDS = { processing: "at work", waiting_user_answer: "asks for permission", error: "has ended", unknown: "starting", gone: "terminal is closed" };
function standing(role) {
  const run = view.run, turn = run.current === null ? null : run.handoffs[run.current];
  const id = (run.terminals[role.name] || {}).id;
  const status = id ? view.statuses[id] : "";
  const last = run.handoffs.filter((item) => item.role === role.name && item.taken !== null).pop();
  if (turn && turn.role === role.name && run.status === "RUNNING" && run.waiting) return "waits to try again";
  if (turn && turn.role === role.name && run.status === "RUNNING") return WORDS[status] && status !== "unknown" ? WORDS[status] : "at work";
  if (status === "error" || status === "waiting_user_answer") return WORDS[status];
  if (turn && turn.role === role.name) return "was at work";
  if (last && last.verdict) return last.verdict.label.toLowerCase();
  return last ? "has replied" : "waits for its turn";
}
function drawPipeline() {
  const run = view.run;
  if (!run) return;
  const turn = run.current === null || run.status !== "RUNNING" ? null : run.handoffs[run.current];
  fill($("pipeline"), run.roles.map((role, number) => {
    const mine = run.handoffs.filter((item) => item.role === role.name);
    const tokens = mine.reduce((sum, item) => sum + (item.tokens ? item.tokens.total : 0), 0);
    const at = turn && turn.role === role.name;
    const time = at ? clock(worked(turn)) : mine.length ? `${mine.length} turn${mine.length > 1 ? "s" : ""}` : "";
    return h("li", { class: `step ${role.kind}${at ? " now" : ""}`, "aria-current": at ? "step" : null },
      h("button", { type: "button", onclick: () => show(role.name), title: `terminal ${number + 1}`, "data-role": role.name },
        h("span", { class: "who" }, named(role.name)), h("span", { class: "what" }, standing(role)),
        h("span", { class: "numbers" }, h("span", { class: "time" }, time), h("span", {}, tokens ? `${count(tokens)} tokens` : ""))));
  }));
}
// -- the timeline: drawn by the server, the same as in the report; here its turns can be chosen

async function loadTimeline() {
  const id = view.run.id;
  let drawing;
  try { drawing = await get(`/watch/runs/${encodeURIComponent(id)}/timeline`); } catch { return; }
  if (view.run.id !== id) return;
  view.timeline = drawing;
  drawTimeline();
}
function drawTimeline() {
  if (!view.timeline) return;
  const [tag, attributes, children] = view.timeline;
  fill($("timeline"), [svg([tag, { ...attributes, role: "group" }, children])]);
}
function svg(part) {
  if (typeof part === "string") return part;
  const [tag, attributes, children] = part, node = h(`svg:${tag}`, attributes, children.map(svg));
  if (!("data-number" in attributes)) return node;
  const number = attributes["data-number"], open = () => choose(number, true);
  node.classList.toggle("chosen", number === view.chosen);
  for (const [name, value] of [["tabindex", 0], ["role", "button"]]) node.setAttribute(name, value);
  node.addEventListener("click", open);
  node.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } });
  return node;
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
  fill($("terminal-tabs"), [...run.roles.map((role, number) => tab(role.name, named(role.name), number + 1)), tab("all", "All five", 0)]);
  $("follow").setAttribute("aria-pressed", String(view.follow));
  $("screens").className = `screens${view.terminal === "all" ? " all" : ""}`;
  const key = `${run.id} ${run.elsewhere} ${names.map((name) => `${name} ${run.terminals[name].id}`).join(" ")}`;
  if ($("screens").dataset.key === key) return;
  $("screens").dataset.key = key;
  for (const screen of Object.values(view.screens)) screen.terminal.dispose();
  view.screens = {};
  $("screens").replaceChildren(...(names.length ? names.map((name) => screenFor(name)) : [h("div", { class: "screen empty" }, run.elsewhere ? `The terminals of this run are on ${run.elsewhere}.` : "The terminals of this run have ended.")]));
  for (const name of names) fetchScreen(run.terminals[name].id, true);
}
function screenFor(name) {
  const place = h("div", {}), words = h("span", {}, ""), id = view.run.terminals[name].id;
  const terminal = new Terminal({ disableStdin: true, cursorBlink: false, cursorInactiveStyle: "none", scrollback: 0, fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize: 12, theme: colours(), screenReaderMode: true });
  view.screens[id] = { name, terminal, place, words, opened: false, rows: 0 };
  return h("div", { class: "screen", "data-screen": name }, h("h3", {}, named(name), words), place);
}
function fetchScreen(id, always = false) {
  if (!view.screens[id] || (document.hidden && !always)) return;
  later(`screen ${id}`, async () => {
    const screen = view.screens[id];
    if (!screen) return;
    try { paint(screen, await get(`/terminals/${id}/screen`)); } catch { if (!screen.opened) screen.place.textContent = "This terminal has ended."; }
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
    const open = run.status === "RUNNING" ? "at work" : "no reply";
    const said = turn.verdict ? turn.verdict.label.split(",")[0] : turn.missed ? "no reply" : turn.taken === null ? open : "";
    items.push(h("li", {}, h("button", { type: "button", "data-turn": number, "aria-current": String(number === view.chosen), onclick: () => choose(number, true) },
      h("span", { class: `pip ${turn.kind}` }), h("span", {}, named(turn.role), h("span", { class: "more" }, `  cycle ${turn.cycle}${turn.again ? ", asked again" : ""}`)),
      h("span", { class: `said ${verdictClass(turn)}` }, said))));
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
  const key = `${run.id} ${number} ${turn ? turn.taken : ""} ${turn && turn.verdict ? turn.verdict.word + turn.verdict.reason : ""}`;
  if (!turn || (view.sheet && view.sheet.key === key)) return;
  try { view.sheet = { key, turn, ...(await get(`/watch/runs/${encodeURIComponent(run.id)}/handoffs/${number}`)) }; } catch { return; }
  drawSheet();
}
function drawSheet() {
  const sheet = view.sheet, turn = sheet.turn, verdict = turn.verdict;
  const size = turn.tokens ? `, ${turn.tokens.input.toLocaleString()} tokens in, ${turn.tokens.output.toLocaleString()} out` : "";
  if (view.tab === "output" && !sheet.output) view.tab = "reply";
  const tabs = h("div", { class: "tabs", role: "tablist" }, TABS.filter(([name]) => name !== "output" || sheet.output).map(([name, words]) => h("button", { type: "button", role: "tab", "data-tab": name, "aria-selected": String(view.tab === name), onclick: () => read(name) },
    name === "left" && sheet.left_out_bytes ? `${words} (${count(sheet.left_out_bytes)} bytes)` : words)));
  fill($("sheet"), [
    h("h3", {}, `${named(turn.role)}, round ${turn.round}, cycle ${turn.cycle}`),
    h("p", { class: "meta" }, `${hour(turn.sent)}${turn.taken === null ? ", no reply yet" : `, ${turn.missed ? "no reply" : "replied"} after ${duration(turn.seconds)}`}${size}${turn.reminders ? `, reminded ${turn.reminders}×` : ""}${turn.source === "screen" ? ", read from its screen" : ""}`),
    verdict ? h("div", { class: "judgement" }, h("strong", { class: verdictClass(turn) }, verdict.label), h("span", { class: "why" }, verdict.reason === verdict.word.toLowerCase() ? "with evidence of" : verdict.reason),
      turn.doubt ? h("p", { class: "again" }, turn.doubt) : null,
      verdict.command ? h("p", {}, h("code", {}, verdict.command)) : null, verdict.evidence.length ? h("p", { class: "chips" }, verdict.evidence.map((word) => h("span", {}, word))) : null) : null,
    turn.violation ? h("p", { class: "again" }, `It ${turn.violation}`) : null,
    tabs, sheetBody(sheet)]);
}
function sheetBody(sheet) {
  if (view.tab !== "left") return sheet[view.tab] ? h("pre", { id: "text" }, sheet[view.tab]) : h("p", { class: "quiet" }, view.tab === "reply" ? (sheet.turn.missed ? "There was no response." : "There is no response yet.") : "The prompt is not in the run's folder.");
  const parts = sheet.condensed.map((part) => h("div", { class: "lost-part" },
    h("p", {}, part.left_out.length ? `${part.left_out_bytes.toLocaleString()} of ${part.size.toLocaleString()} bytes of ${part.what} were left out of the prompt:` : `The prompt contains all of ${part.what}.`),
    part.left_out.length ? h("pre", { class: "gone" }, part.left_out.join("\n")) : null));
  return h("div", { id: "text" }, parts.length ? parts : h("p", { class: "quiet" }, "Nothing in this prompt could be shortened."));
}
function read(tab) {
  view.tab = tab;
  if (view.sheet) drawSheet();
}

// -- the diff: asked for when a turn has ended; the lines of a file are drawn when it is unfolded

async function loadDiff() {
  const run = view.run, key = `${run.id} ${run.status} ${run.handoffs.filter((turn) => turn.taken !== null).length}`;
  if (view.diff.key === key) return;
  if (!view.diff.key.startsWith(`${run.id} `)) view.diff = { key, text: "", folds: {} };
  view.diff.key = key;
  let found;
  try { found = await get(`/watch/runs/${encodeURIComponent(run.id)}/diff`); } catch { if (view.diff.key === key) view.diff.key = ""; return; }
  const text = JSON.stringify(found);
  if (view.diff.key !== key || view.diff.text === text) return;
  view.diff.text = text;
  drawDiff(found, `${view.program} diff ${run.id}`);
}
function drawDiff(found, command) {
  const number = found.files.length + found.more_files;
  $("diff-words").replaceChildren(...(number ? [`${plural(number, "file")} changed since the start commit, `, counts(found), ". ", found.note] : [found.note || "Nothing has changed since the start commit."]));
  const rest = found.more_files ? [h("p", {}, `… and ${plural(found.more_files, "more file")}. All of it: `, h("code", {}, command))] : [];
  $("diff").replaceChildren(...found.files.map((file) => drawFile(file, command)), ...rest);
}
const counts = (part) => h("span", { class: "counts" }, h("span", { class: "plus" }, `+${part.added}`), " ", h("span", { class: "minus" }, `−${part.removed}`));
function drawFile(file, command) {
  const folds = view.diff.folds, has = file.lines.length + file.left_out > 0;
  const head = [h("span", { class: "name" }, file.title), file.words ? h("span", { class: "what" }, file.words) : null, has ? counts(file) : null];
  if (!has) return h("p", { class: "file" }, head);
  const node = h("details", { class: "file", open: folds[file.title] ?? file.open }, h("summary", {}, head));
  const fillIn = () => { if (node.open && !node.querySelector(".diff, .more")) node.append(drawLines(file), file.left_out ? h("p", { class: "more" }, `${plural(file.left_out, "more line")}. All of it: `, h("code", {}, command)) : ""); };
  node.addEventListener("toggle", () => { folds[file.title] = node.open; fillIn(); });
  fillIn();
  return node;
}
const drawLines = (file) => h("table", { class: "diff" }, h("tbody", {}, file.lines.map(([kind, old, now, text]) => h("tr", { class: kind }, h("td", {}, old ?? ""), h("td", {}, now ?? ""), h("td", {}, text)))));

// -- tokens and runs

function drawTokens() {
  const run = view.run, rounds = [...new Set(run.handoffs.map((turn) => turn.round))];
  const sum = (turns) => turns.reduce((total, turn) => total + (turn.tokens ? turn.tokens.total : 0), 0);
  const cell = (turns) => h("td", {}, sum(turns) ? count(sum(turns)) : "–");
  const cells = (turns) => [...rounds.map((number) => cell(turns.filter((turn) => turn.round === number))), cell(turns)];
  if (!run.tokens) { $("tokens").replaceChildren(h("p", { class: "quiet" }, "Unknown: the agents have recorded none.")); return; }
  const table = h("table", { class: "tokens" }, h("thead", {}, h("tr", {}, h("th", {}, ""), rounds.map((number) => h("th", {}, `Round ${number}`)), h("th", {}, "Run"))),
    h("tbody", {}, run.roles.map((role) => h("tr", {}, h("td", {}, named(role.name)), cells(run.handoffs.filter((turn) => turn.role === role.name)))), h("tr", {}, h("td", {}, "All"), cells(run.handoffs))));
  $("tokens").replaceChildren(h("div", { class: "wide" }, table));
}
function drawRuns(runs) {
  fill($("runs"), runs.map((run) => h("tr", { class: view.run && run.id === view.run.id ? "chosen" : "" },
    h("td", {}, h("button", { type: "button", "data-run": run.id, onclick: () => { [view.wanted, view.task] = [run.id, ""]; load(); scrollTo({ top: 0 }); } }, run.id)),
    h("td", { class: STATUS_CLASSES[run.status] || "" }, run.headline), h("td", { title: run.title }, run.title), h("td", {}, duration(run.seconds)),
    h("td", {}, run.rounds), h("td", {}, run.tokens === null ? "" : count(run.tokens)))));
}

// -- keys and time

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !view.run || $("help").open || $("ask").open) return;
  const roles = view.run.roles, key = event.key;
  if (/^[1-5]$/.test(key)) show(roles[Number(key) - 1].name);
  else if (key === "0") show("all");
  else if (key === "f") show("", true);
  else if (key === "j" || key === "k") choose(Math.min(Math.max(view.chosen + (key === "j" ? 1 : -1), 0), view.run.handoffs.length - 1), true);
  else if (/^[racpl]$/.test(key)) read({ r: "reply", a: "actions", c: "output", p: "prompt", l: "left" }[key]);
  else if (key === "d") $("diff-title").scrollIntoView({ behavior: "smooth" });
  else if (key === "?") $("help").showModal();
  else return;
  event.preventDefault();
  if (/^[0-5f]$/.test(key)) $("terminals-title").scrollIntoView({ block: "nearest", behavior: "smooth" });
});
$("follow").addEventListener("click", () => show("", true));
$("ask-no").addEventListener("click", () => $("ask").close());
$("help-button").addEventListener("click", () => $("help").showModal());
$("help").addEventListener("click", (event) => { if (event.target === $("help")) $("help").close(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const screen of Object.values(view.screens)) screen.terminal.options.theme = colours(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) for (const id of Object.keys(view.screens)) fetchScreen(id); });
addEventListener("resize", () => { for (const id of Object.keys(view.screens)) fetchScreen(id); });
setInterval(() => {
  if (!view.run || view.run.status !== "RUNNING" || view.lost || document.hidden) return;
  drawFacts();
  const turn = view.run.current === null ? null : view.run.handoffs[view.run.current];
  if (turn) { const time = document.querySelector(".step.now .time"); if (time) time.textContent = clock(worked(turn)); later("timeline", loadTimeline, TIMELINE_MILLISECONDS); }
}, 1000);
listen();
