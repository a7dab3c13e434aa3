"use strict";
// The queue: what waits, runs, is parked and has ended, on all machines. It is asked for while somebody looks at it.

const LOOK_MILLISECONDS = 3000;
const CLASSES = { passed: "good", failed: "bad", parked: "again", cancelled: "again" };
let asked = 0;

/** A task, which leads to its run where it has one. */
const task = (row) => [row.run ? h("a", { href: `/#task=${encodeURIComponent(row.id)}`, "data-task": row.id }, row.title || row.id) : h("span", { "data-task": row.id }, row.title || row.id), h("span", { class: "id" }, row.id)];
const used = (row) => [row.tokens ? count(row.tokens) : "", row.cost ? h("span", { class: "id" }, money(row.cost)) : null];
const step = (row) => [row.round ? `round ${row.round}` : "", row.phase, row.agent ? named(row.agent).toLowerCase() : ""].filter(Boolean).join(", ") || "starting";
const result = (row) => [row.commit && row.branch ? h("code", {}, row.branch) : "", row.reason ? h("span", { class: "id" }, row.reason) : null];
/** A moment: the time of day, with the date where it is another day. */
function moment(seconds) {
  const when = new Date(seconds * 1000), day = when.toDateString() === new Date().toDateString() ? "" : `${when.toLocaleDateString([], { month: "short", day: "numeric" })}, `;
  return seconds ? day + when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false }) : "";
}
const COLUMNS = {
  running: [["Task", task], ["Where", (row) => `${row.machine}/${row.slot}`], ["At work", step], ["Tokens", used], ["For", (row, now) => duration(now - row.since)]],
  waiting: [["Task", task], ["Waits for", (row) => row.reason.replace(/^waits (for )?/, "")], ["Priority", (row) => row.priority], ["Added", (row) => moment(row.added)]],
  parked: [["Task", task], ["Why", (row) => row.reason.replace(/^parked:? ?/, "")], ["Tokens", used]],
  ended: [["Task", task], ["Outcome", (row) => h("span", { class: CLASSES[row.status] }, row.status)], ["Result", result], ["Tokens", used], ["On", (row) => row.machine], ["At", (row) => moment(row.ended)]],
  machines: [["Machine", (row) => [h("span", { class: "name" }, row.name), h("span", { class: "id" }, row.host === row.name ? "" : row.host)]], ["Is", standing], ["Slots", (row) => `${row.tasks.length} of ${row.slots} busy`],
    ["Has", (row) => [...row.labels.map((name) => `label ${name}`), ...row.accounts.map((name) => `account ${name}`), ...Object.entries(row.providers).map(([name, more]) => `${name} ${more}`.trim())].join(", ")],
    ["Last seen", (row) => `${duration(row.silent)} ago`]],
};
function standing(row) {
  if (!row.alive) return h("span", { class: "bad" }, "silent");
  if (row.stopped) return h("span", { class: "again" }, row.stopped);
  return row.draining ? h("span", { class: "again" }, "drained") : h("span", { class: "good" }, "alive");
}
function drawTable(name, rows, now) {
  const part = $(name), columns = COLUMNS[name];
  part.hidden = !rows.length;
  const cells = (row) => columns.map(([title, cell]) => h("td", { "data-title": title }, cell(row, now)));
  fill(part.querySelector("div"), [h("table", { class: "queue" }, h("thead", {}, h("tr", {}, columns.map(([title]) => h("th", {}, title)))), h("tbody", {}, rows.map((row) => h("tr", {}, cells(row)))))]);
}
function draw(found) {
  const rows = found.tasks || [], over = ["passed", "failed", "cancelled"];
  const numbers = (names) => names.filter((status) => (found.numbers || {})[status]).map((status) => `${found.numbers[status].toLocaleString()} ${status}`).join(", ");
  $("headline").textContent = found.note ? "No queue" : numbers(["running", "waiting", "parked"]) || "Nothing is left to do";
  document.title = `${$("headline").textContent} · Quintet`;
  $("place").textContent = [numbers(over), found.name].filter(Boolean).join(" · ");
  for (const status of ["running", "waiting", "parked"]) drawTable(status, rows.filter((row) => row.status === status), found.now);
  const ended = rows.filter((row) => over.includes(row.status)), all = over.reduce((sum, status) => sum + ((found.numbers || {})[status] || 0), 0);
  drawTable("ended", ended, found.now);
  $("more").textContent = all > ended.length ? `The newest ${ended.length} of ${all.toLocaleString()}. All of them: ${found.program} queue list --all` : "";
  drawTable("machines", found.workers || [], found.now);
  if (found.note) notice([found.note]);
  else if (!found.workers.some((row) => row.alive) && rows.length > ended.length) notice(["No worker is running. Start one: ", code(`${found.program} worker --slots 2`)]);
  else notice();
}
async function look() {
  clearTimeout(asked);
  if (document.hidden) return;
  try {
    draw(await get("/watch/queue"));
    linked("live", "live");
  } catch (error) { linked("lost", String(error).endsWith(" 401") ? "no token" : "no connection; trying again"); }
  asked = setTimeout(look, LOOK_MILLISECONDS);
}
document.addEventListener("visibilitychange", look);
look();
