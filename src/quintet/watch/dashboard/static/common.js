"use strict";
// What the pages of the dashboard have in common. There is no innerHTML here either: whatever agents wrote stays text.

const $ = (id) => document.getElementById(id);
/** A role as people read it, with a capital to begin with. */
const named = (role) => role[0].toUpperCase() + role.slice(1).replaceAll("_", " ");
function h(tag, attributes, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}
const two = (number) => String(number).padStart(2, "0");
function clock(seconds) {
  const s = Math.max(Math.round(seconds), 0);
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` : `${Math.floor(s / 3600)}:${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}`;
}
function duration(seconds) {
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
const plural = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
/** Replace the children, and leave the keyboard's focus where it was. */
function fill(parent, children) {
  const place = [...parent.querySelectorAll("a, button, [tabindex]")].indexOf(document.activeElement);
  parent.replaceChildren(...children);
  if (place >= 0) [...parent.querySelectorAll("a, button, [tabindex]")][place]?.focus({ preventScroll: true });
}

// -- the server: the token comes in the address's fragment, which no log sees, and leaves it at once

// it is kept for this tab only, and is another one at each start of the server: whoever takes the port meanwhile gets one that is worth nothing
// a link from a notification names a run, one from the queue a task

const given = new URLSearchParams(location.hash.slice(1));
if (given.get("token")) sessionStorage.setItem("quintet-token", given.get("token"));
if (location.hash.length > 1 && (["token", "run", "task"].some((name) => given.has(name)))) history.replaceState(null, "", location.pathname);
function headers(more) {
  const token = sessionStorage.getItem("quintet-token");
  return token ? { Authorization: `Bearer ${token}`, ...more } : { ...more };
}
async function get(path) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (answer.status === 401) askForToken();
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
function askForToken() {
  const old = sessionStorage.getItem("quintet-token");
  notice([old ? "This link is from an earlier start of the server: open the address that " : "This page needs its token: open the address that ", code("quintet dashboard"), " prints", old ? " now." : "."]);
}
const code = (text) => ({ code: true, text });
/** Paragraphs of text and code, above everything else. */
function notice(...lines) {
  const parts = lines.map((line) => h("p", {}, line.map((part) => (typeof part === "string" ? part : part.code ? h("code", {}, part.text) : part.text))));
  if ($("notice").textContent === parts.map((part) => part.textContent).join("")) return; // said already, aloud to some
  $("notice").replaceChildren(...parts);
  $("notice").hidden = !lines.length;
}
const linked = (state, words) => Object.assign($("link"), { className: `link ${state}`, textContent: words });
