// The data of a release -> the page: numbers, warnings, map, and a table that sorts, searches and opens.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);
const score = (value) => (value === null ? "–" : value.toFixed(2));
const link = (name, to = name) => make("a", { href: `#${encodeURIComponent(to)}` }, name);
const facts = (pairs) => pairs.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, words)]);
const dropped = (entry) => sum(entry.dropped.map(([, n]) => n));

// Lines of a warning that are shown before the rest is asked for.
const TOP = 10;

// Heading, class, value to sort by, text to show. What is `wide` shows where there is room, or when it is sorted by.
const COLUMNS = [
  ["name", "", (e) => e.name, null],
  ["kind", "words wide", (e) => e.kind, (e) => e.kind],
  ["rows", "", (e) => e.got, (e) => count(e.got)],
  ["of planned", "third", (e) => (e.planned ? e.got / e.planned : null), (e) => percent(e.got, e.planned)],
  ["dropped", "wide rest", dropped, (e) => count(dropped(e))],
  ["given", "wide rest", (e) => e.origins[0], (e) => share(e, 0)],
  ["mined", "wide", (e) => e.origins[1], (e) => share(e, 1)],
  ["random", "wide rest", (e) => e.origins[2], (e) => share(e, 2)],
  ["positive", "wide", (e) => e.positive, (e) => score(e.positive)],
  ["negative", "wide", (e) => e.negative, (e) => score(e.negative)],
  ["query tokens", "wide", (e) => e.query_tokens, (e) => e.query_tokens ?? "–"],
  ["document tokens", "wide", (e) => e.document_tokens, (e) => e.document_tokens ?? "–"],
];
const share = (entry, origin) => (entry.origins[origin] ? percent(entry.origins[origin], sum(entry.origins)) : "–");

const body = document.querySelector("#table tbody");
const lines = data.entries.map((entry, number) => line(entry, number));
const line_of = new Map(lines.map((found) => [found.entry.name, found]));
let order = [...lines];

/** A name that may be broken behind its underscores, slashes and blanks; elsewhere only where it has none for long. */
function broken(name) {
  const parts = name.split(/(?<=[_/ ])/);
  const kind = (part) => (part.length > 24 ? "long part" : "part");
  return parts.flatMap((part) => [make("span", { class: kind(part) }, part), make("wbr")]).slice(0, -1);
}

/** The row of an entry, the button that opens it, and later its panel. */
function line(entry, number) {
  const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": `panel-${number}` }, ...broken(entry.name));
  const row = make("tr", { class: entry.is_source ? "source" : "" }, make("th", { scope: "row" }, button));
  for (const [, kind, , text] of COLUMNS.slice(1)) row.append(make("td", { class: kind }, String(text(entry))));
  if (entry.got < 0.5 * entry.planned) row.children[3].classList.add("low");
  const words = [entry.name, entry.source, entry.kind, entry.category, entry.licence].join("\n").toLowerCase();
  const found = { entry, number, button, row, panel: null, words };
  button.addEventListener("click", () => toggle(found));
  return found;
}

function toggle(found, open = found.button.getAttribute("aria-expanded") !== "true") {
  found.button.setAttribute("aria-expanded", String(open));
  if (open && !found.panel) {
    const inside = make("div");
    const cell = make("td", { colspan: COLUMNS.length }, inside);
    found.panel = make("tr", { class: "panel", id: `panel-${found.number}` }, cell);
    found.row.after(found.panel);
    fill(inside, found.entry, document.querySelector(".scroll").clientWidth - 40);
  }
  if (found.panel) found.panel.hidden = !open;
}

/** Fill the panel of an entry: what is known of it, figures, examples. */
function fill(cell, entry, room) {
  const reasons = entry.dropped.map(([reason, n]) => `${reason} ${count(n)}`).join(", ");
  const origins = ["given", "mined", "random"].map((name, i) => [name, entry.origins[i]]).filter(([, n]) => n);
  const tokens = [["queries", entry.query_tokens], ["documents", entry.document_tokens]].filter(([, n]) => n !== null);
  cell.append(make("dl", { class: "facts" }, ...facts([
    ["kind", entry.kind],
    ["rows", `${count(entry.got)}${entry.planned ? ` of ${count(entry.planned)} planned` : ""}`],
    ["dropped", reasons || "none"],
    ["negatives", origins.map(([name, n]) => `${name} ${count(n)}`).join(", ") || "none"],
    ...(entry.positive === null ? [] : [["median scores", `positives ${score(entry.positive)}, negatives ${score(entry.negative)}`]]),
    ...(tokens.length ? [["median tokens", tokens.map(([name, n]) => `${name} ${count(n)}`).join(", ")]] : []),
    ...(entry.category ? [["category", entry.category]] : []),
    ["licence", entry.licence],
    ...entry.facts,
    ...said(entry.instructions),
  ])));
  if (entry.nearest.length) {
    const links = entry.nearest.flatMap((name, i) => (i ? [", ", link(name)] : [link(name)]));
    cell.append(make("p", { class: "quiet" }, "Nearest tasks: ", ...links));
  }
  const { drawn, width } = figures(entry, data, room);
  const grid = `grid-template-columns: repeat(auto-fill, minmax(min(100%, ${width}px), 1fr))`;
  if (drawn.length) cell.append(make("h3", {}, "Histograms"), make("div", { class: "figures", style: grid }, ...drawn));
  if (entry.examples.length) {
    cell.append(make("h3", {}, "Examples"), make("div", { class: "examples" }, ...entry.examples.map(example)));
  }
}

/** The instructions as facts; one where both sides have the same. */
function said([query, document]) {
  if (!query) return [];
  return query === document ? [["instruction", query]] : [["for queries", query], ["for documents", document]];
}

function example(row) {
  const scored = (value) => (value === null ? "" : `${value.toFixed(3)} `);
  const texts = [
    ["query", row.query], ...(row.label === null ? [] : [["label", row.label]]),
    ["positive", make("span", {}, make("span", { class: "tag" }, scored(row.score)), row.positive)],
    ...row.negatives.map(([text, value, origin, label]) => [
      "negative",
      make("span", {}, make("span", { class: "tag" }, `${scored(value)}${origin}${label === null ? "" : `, ${label}`} `), text),
    ]),
  ];
  return make("article", { class: "example" },
    make("h4", {}, row.why),
    make("dl", { class: "facts" }, ...facts(texts)),
    row.more ? make("p", { class: "quiet" }, `and ${many(row.more, "negative")} more`) : null,
    make("p", { class: "quiet" }, `${row.id}, from ${row.origin}`));
}

/** Put the rows into the table as they are sorted and searched for, panels behind their rows. */
function show() {
  const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [level, kind] = [byId("level").value, byId("kind").value];
  const fits = ({ entry, words }) =>
    wanted.every((word) => words.includes(word))
    && (!level || entry.is_source === (level === "source") || (level === "task" && entry.is_task))
    && (!kind || entry.kind.split(", ").includes(kind));
  const seen = order.filter(fits);
  body.replaceChildren(...seen.flatMap(({ row, panel }) => (panel ? [row, panel] : [row])));
  byId("shown").textContent = `${count(seen.length)} of ${count(lines.length)} shown`;
}

/** Sort by a column: numbers from the highest, names from A; again turns it round. What has no value stays last. */
function sort(number) {
  const headings = document.querySelectorAll("#table thead th");
  const [name, , value] = COLUMNS[number];
  const before = headings[number].getAttribute("aria-sort");
  const direction = before ? (before === "ascending" ? "descending" : "ascending") : number < 2 ? "ascending" : "descending";
  for (const heading of headings) heading.removeAttribute("aria-sort");
  headings[number].setAttribute("aria-sort", direction);
  for (const row of [headings[0].parentNode, ...lines.map((found) => found.row)]) {
    [...row.children].forEach((cell, i) => cell.classList.toggle("now", i === number));
  }
  byId("sort").value = name;
  const [low, high] = number < 2 ? ["A", "Z"] : ["lowest", "highest"];
  byId("turn").textContent = `${direction === "ascending" ? low : high} first \u2195`;
  byId("turn").hidden = false;
  const turn = direction === "ascending" ? 1 : -1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en") : a - b);
  const empty = (v) => v === null || v === undefined || Number.isNaN(v);
  order.sort((a, b) => {
    const [left, right] = [value(a.entry), value(b.entry)];
    if (empty(left) || empty(right)) return empty(left) - empty(right) || a.number - b.number;
    return turn * compare(left, right) || a.number - b.number;
  });
  show();
}

/** The headings, the list of what can be sorted by, and the button that turns it round. */
function sorting() {
  const head = document.querySelector("#table thead tr");
  COLUMNS.forEach(([name, kind], number) => {
    const button = make("button", { type: "button", onclick: () => sort(number) }, name);
    head.append(make("th", { scope: "col", class: kind }, button));
    byId("sort").append(make("option", {}, name));
  });
  const chosen = () => COLUMNS.findIndex(([name]) => name === byId("sort").value);
  byId("sort").addEventListener("input", () => chosen() >= 0 && sort(chosen()));
  byId("turn").addEventListener("click", () => sort(chosen()));
}

/** Open the entry that the address names, and go there. */
function go() {
  const found = line_of.get(decodeURIComponent(location.hash.slice(1)));
  if (!found) return;
  if (!found.row.isConnected) {
    byId("filters").reset();
    show();
  }
  toggle(found, true);
  found.button.focus({ preventScroll: true });
  found.row.scrollIntoView({ block: "start" });
}

const whole_of = new Map(data.entries.filter((entry) => !entry.is_task).map((entry) => [entry.source, entry.name]));

/** A line of a warning; one that stands for several tasks opens. */
function note([name, words, inner]) {
  const to = line_of.has(name) ? name : whole_of.get(name);
  if (!inner) return make("li", {}, to === undefined ? name : link(name, to), `: ${words}`);
  const summary = make("summary", {}, `${name}: ${words}`);
  return make("li", {}, make("details", {}, summary, make("ul", {}, ...inner.map(note))));
}

function warning({ title, advice, found, notes }) {
  const [first, rest] = [notes.slice(0, TOP), notes.slice(TOP)];
  const brief = ([name, , inner]) => (inner ? `${many(inner.length, "task")} of ${name}` : name);
  const some = notes.slice(0, 3).map(brief).join(", ") + (notes.length > 3 ? ", …" : "");
  const heading = make("summary", {}, make("strong", {}, title), ` (${count(found)}) `, make("span", { class: "quiet" }, some));
  const more = rest.length ? make("details", {}, make("summary", {}, `${count(rest.length)} more`), make("ul", {}, ...rest.map(note))) : null;
  return make("details", { class: "warning" }, heading, make("p", { class: "quiet" }, advice), make("ul", {}, ...first.map(note)), more);
}

/** The map, or why there is none. */
function mapped() {
  const placed = data.entries.filter((entry) => entry.place !== null);
  const tasks = data.entries.filter((entry) => entry.is_task && entry.got).length;
  if (tasks < 3) return [make("p", {}, `${tasks === 1 ? "One task needs" : "Two tasks need"} no map.`)];
  if (placed.length < 3) return [make("p", {}, "There is no map: this release does not say where its tasks lie.")];
  const told = "Each dot is a task, at the mean of its queries' vectors: the two directions in which tasks differ most. "
    + "A click opens it; each task names its nearest ones in the table below.";
  const opened = (name) => (location.hash = `#${encodeURIComponent(name)}`);
  return [make("p", { class: "quiet" }, told), map(placed, byId("map").clientWidth, opened)];
}

function start() {
  byId("lead").append(data.lead, make("br"), "Content digest ", make("code", {}, data.digest));
  byId("numbers").append(...data.numbers.map(([name, value]) => make("div", {}, ...facts([[name, value]]))));
  byId("first").append(...(data.notice ? [make("p", {}, data.notice)] : []), ...data.warnings.map(warning));
  if (!data.warnings.length) byId("first").append(make("p", {}, "Nothing stands out."));
  byId("params").append(...facts(data.params));
  sorting();
  byId("map").append(...mapped());
  for (const id of ["search", "level", "kind"]) byId(id).addEventListener("input", show);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", go);
  show();
  go();
}

start();
