"use strict";
// The timeline: the same picture as in the report, made to be clicked. What it needs of the page is in dashboard.js.

const G = { width: 980, left: 136, right: 20, top: 30, lane: 34, bar: 16, gap: 26 };
const SHAPES = { good: "M-3.4 .2 L-1 2.8 L3.6 -2.6", bad: "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6", void: "M-3.6 3.6 L3.6 -3.6", again: "M2.8 -1.6 A3.2 3.2 0 1 0 3.1 1.1 M3.4 -3.6 L3 -1.2 L.6 -1.6" };
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
  run.roles.forEach((role, number) => parts.push(h("svg:text", { class: "lane-name", x: 0, y: y(number) + 4 }, named(role.name)),
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
  const words = `${named(turn.role)}, round ${turn.round}, cycle ${turn.cycle}: ${spell(worked(turn))}${turn.verdict ? `, ${turn.verdict.label}` : ""}`;
  const open = () => choose(number, true);
  return h("svg:g", { class: `turn${number === view.chosen ? " chosen" : ""}`, tabindex: 0, role: "button", "aria-label": words, onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
    h("svg:title", {}, words),
    h("svg:rect", { class: `bar ${turn.kind}${turn.taken === null ? " open" : ""}`, x, y: middle - G.bar / 2, width, height: G.bar, rx: 3 }),
    turn.verdict ? h("svg:g", { class: `mark ${mood(turn)}`, transform: `translate(${x + width} ${middle})` }, h("svg:circle", { r: 7.5 }), h("svg:path", { d: SHAPES[mood(turn)] })) : null);
}
