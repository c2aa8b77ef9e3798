// Counts in bins -> figures, drawn by Observable Plot, each with the sentence that says the same.
"use strict";

/** Make an element: `properties` are attributes (`on...` listeners), children are elements or plain text. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const count = (n) => n.toLocaleString("en-US");
const many = (n, noun) => `${count(n)} ${n === 1 ? noun : noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
const color = (name) => `var(--${name})`;

/** A share in words: only none reads as 0%, and only all as 100%. */
function percent(part, whole) {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return "<0.1%";
  if (share >= 99.5 && share < 100) return ">99%";
  return `${share > 0 && share < 0.95 ? share.toFixed(1) : Math.round(share)}%`;
}

/** The bins of a histogram, [first bin, counts...], as {x1, x2, y (rows), share}; bins are joined up to the edges `kept`. */
function bins(histogram, edges, kept = () => true) {
  const [first, ...counts] = histogram;
  const total = counts.reduce((sum, n) => sum + n, 0);
  const joined = [];
  counts.forEach((y, i) => {
    const [x1, x2] = [edges[first + i], edges[first + i + 1]];
    if (!i || kept(x1)) joined.push({ x1: edges.slice(0, first + i + 1).findLast(kept), x2, y: 0 });
    joined.at(-1).x2 = edges.slice(first + i + 1).find(kept) ?? x2;
    joined.at(-1).y += y;
  });
  return joined.map((bin) => ({ ...bin, share: bin.y / total }));
}

/** Where the middle nine tenths lie, as far as bins can tell. */
function spread(rows) {
  const at = (share) => {
    let sum = 0;
    return rows.find((bin) => (sum += bin.share) >= share - 1e-9) ?? rows.at(-1);
  };
  return [at(0.05).x1, at(0.5), at(0.95).x2];
}

const words = (name, rows) => {
  const total = rows.reduce((sum, bin) => sum + bin.y, 0);
  const [low, middle, high] = spread(rows);
  return `${many(total, name)}: nine tenths between ${low} and ${high}, the median in ${middle.x1} to ${middle.x2}`;
};

/** A figure with a heading, a plot and the sentence that tells what it shows. */
function figure(title, series, options, width) {
  for (const part of series) part.bins = bins(part.histogram, options.edges, options.kept);
  const place = options.place ?? ((x) => x);
  const sentence = series.map((part) => (options.tell ?? words)(part.name, part.bins)).join("; ");
  const lines = options.lines?.(series) ?? [];
  const told = [`${sentence}.`, ...lines.map(([at, what]) => `Dashed, at ${at}: ${what}.`)].join(" ");
  const plot = Plot.plot({
    width, height: 150, marginLeft: 38, marginTop: 14, ariaLabel: `${title}. ${told}`,
    x: { label: options.unit, ticks: 6, ...options.axis?.(series) },
    y: { label: null, grid: true, percent: true, ticks: 4, tickFormat: (percent) => `${percent}%` },
    style: { fontSize: "11px", color: "currentColor" },
    marks: [
      ...series.flatMap((part) => bars(part, place, series.length > 1)),
      options.named ? Plot.text(series[0].bins, options.named) : null,
      Plot.ruleX(lines, { x: (line) => place(line[0]), stroke: "currentColor", strokeDasharray: "4 3" }),
      Plot.ruleY([0]),
    ],
  });
  plot.setAttribute("role", "img");
  const keys = series.flatMap((part) => [make("span", { class: `key ${part.color}` }, `${part.name}s`), " "]);
  const caption = make("figcaption", {}, ...(series.length > 1 ? [...keys, make("br")] : []), told);
  return make("figure", {}, make("h4", {}, title), plot, caption);
}

/** The bars of a series; of one that shares its figure the outline, so that none hides another. */
function bars({ name, color: of, bins: rows }, place, shares) {
  const [x1, x2] = [(bin) => place(bin.x1), (bin) => place(bin.x2)];
  const title = (bin) => `${bin.x1} to ${bin.x2}: ${many(bin.y, name)}`;
  const fill = { fill: color(of), fillOpacity: shares ? 0.1 : 0.85, inset: shares ? 0 : 0.5 };
  const areas = Plot.rectY(rows, { x1, x2, y: "share", ...fill, title });
  if (!shares) return [areas];
  const steps = rows.flatMap((bin) => [[x1(bin), bin.share], [x2(bin), bin.share]]);
  const outline = [[steps[0][0], 0], ...steps, [steps.at(-1)[0], 0]];
  return [areas, Plot.line(outline, { stroke: color(of), strokeWidth: 2, strokeLinejoin: "miter" })];
}

/** All figures of an entry that it has numbers for, {drawn, width}: as many in each row of `room` pixels as fit. */
function figures(entry, data, room) {
  const wanted = plans(entry, data)
    .map(([title, series, options]) => [title, series.filter((part) => part.histogram), options])
    .filter(([, series]) => series.length);
  const all = wanted.length + (entry.labels.length ? 1 : 0);
  const fit = Math.max(1, Math.floor((room + 24) / 324));
  const columns = Math.ceil(all / Math.ceil(all / fit));
  const width = Math.min(460, Math.floor((room - 24 * (columns - 1)) / columns));
  const drawn = wanted.map((plan) => figure(...plan, width));
  return { drawn: [...drawn, ...(entry.labels.length ? [labels(entry, width)] : [])], width };
}

/** Of each figure that an entry may have: title, series, options. */
function plans(entry, { edges, max_length_tokens: most }) {
  const { plots } = entry;
  const lines = ([{ bins }]) => (most > bins[0].x1 && most < bins.at(-1).x2 ? [[most, "the encoder reads no further"]] : []);
  const lengths = { edges: edges.tokens, unit: "tokens; each step doubles", axis: doubling, place: doublings, kept: is_quarter, lines };
  const plain = (name, histogram) => [{ name, color: "plain", histogram }];
  const both = (positives, negatives) => [
    { name: "positive", color: "positive", histogram: plots[positives] },
    { name: "negative", color: "negative", histogram: plots[negatives] },
  ];
  const cosines = { edges: edges.cosine, unit: "cosine", lines: () => entry.lines };
  const places = { edges: edges.rank, unit: "place, 1 is nearest", axis: places_axis, tell: ranks, named: shares_of(plots.negative_ranks) };
  return [
    ["Length of queries", plain("query", plots.query_tokens), lengths],
    ["Length of documents", plain("document", plots.document_tokens), lengths],
    ["Cosine with the query", both("cosine_positives", "cosine_negatives"), cosines],
    ["s_pos and s_neg", both("sum_positives", "sum_negatives"), { edges: edges.sum, unit: "score" }],
    ["Cosine with the query, of inputs", both("positive_cosines", "negative_cosines"), cosines],
    ["Place of mined negatives", [{ name: "mined negative", color: "negative", histogram: plots.negative_ranks }], places],
  ];
}

/** Where a length stands on an axis whose steps double: whole numbers are powers of two, evenly parted between. */
function doublings(length) {
  const octave = Math.floor(Math.log2(length));
  return octave + length / 2 ** octave - 1;
}

/** Whether a length begins a bar: four to each doubling, so that all are equally wide. */
function is_quarter(length) {
  return length % 2 ** Math.max(0, Math.floor(Math.log2(length)) - 2) === 0;
}

/** An axis of lengths from 4 to 256 tokens, and as far as they go. */
function doubling([{ bins }]) {
  const low = Math.min(2, Math.floor(Math.log2(bins[0].x1)));
  const high = Math.max(8, Math.ceil(Math.log2(bins.at(-1).x2)));
  return { domain: [low, high], ticks: d3.range(low, high + 1), tickFormat: (octave) => `${2 ** octave}` };
}

/** An axis of places: whole numbers, and never so few that one bar fills it. */
function places_axis([{ bins }]) {
  const last = Math.max(8, bins.at(-1).x1);
  const step = Math.ceil(last / 8);
  return { domain: [1, last + 1], ticks: d3.range(1, last + 1, step).map((place) => place + 0.5), tickFormat: (x) => x - 0.5 };
}

/** The share above each bar, where bars are few: one beside a much higher one is too low to be seen. */
function shares_of(histogram) {
  if (!histogram || histogram.length > 13) return null;
  const total = histogram.slice(1).reduce((sum, n) => sum + n, 0);
  const text = (bin) => (bin.y ? percent(bin.y, total) : "");
  return { x: (bin) => (bin.x1 + bin.x2) / 2, y: "share", text, dy: -6, fontSize: 10 };
}

function ranks(name, rows) {
  const total = rows.reduce((sum, bin) => sum + bin.y, 0);
  const nearest = rows.find((bin) => bin.x1 === 1)?.y ?? 0;
  return `${many(total, name)}: ${percent(nearest, total)} are the nearest candidate, the last is number ${rows.at(-1).x1}`;
}

/** How the rows of a label task are spread over its labels. */
function labels(entry, width) {
  if (!entry.labels.length) return null;
  const total = entry.got;
  const short = (label) => (label.length > 18 ? `${label.slice(0, 17)}…` : label);
  const sentence = entry.labels.map(([label, n]) => `${label} ${count(n)} (${percent(n, total)})`).join(", ");
  const rest = entry.labels_in_all - entry.labels.length;
  const told = `${sentence}${rest ? `, and ${many(rest, "label")} more` : ""}`;
  const plot = Plot.plot({
    width, height: 40 + 22 * entry.labels.length, marginLeft: 110, ariaLabel: `Rows by label. ${told}`,
    x: { label: "rows", grid: true, ticks: 4 },
    y: { label: null, domain: entry.labels.map(([label]) => label), tickFormat: short },
    style: { fontSize: "11px", color: "currentColor" },
    marks: [
      Plot.barX(entry.labels, { x: (row) => row[1], y: (row) => row[0], fill: color("plain"), fillOpacity: 0.85 }),
      Plot.ruleX([0]),
    ],
  });
  plot.setAttribute("role", "img");
  return make("figure", {}, make("h4", {}, "Rows by label"), plot, make("figcaption", {}, `${told}.`));
}

/** The largest tasks whose names find room to the right or left of their dots, as [right ones, left ones]. */
function named_on(entries, at) {
  const taken = entries.map((entry) => [at.x(entry.place[0]) - 6, at.y(entry.place[1]) - 6, 12, 12]);
  const meet = ([x, y, w, h], [left, top, wide, high]) => x < left + wide && left < x + w && y < top + high && top < y + h;
  const largest = [...entries].sort((a, b) => b.got - a.got || d3.ascending(a.name, b.name));
  const [right, left] = [[], []];
  for (const entry of largest) {
    const [x, y] = [at.x(entry.place[0]), at.y(entry.place[1])];
    const wide = 6.4 * shortened(entry.name).length;
    for (const [side, from] of [[right, x + 7], [left, x - 7 - wide]]) {
      const box = [from, y - 8, wide, 16];
      if (from < 24 || from + wide > at.x.range()[1] + 10 || taken.some((other) => meet(box, other))) continue;
      taken.push(box);
      side.push(entry);
      break;
    }
  }
  return [right, left];
}

const shortened = (name) => (name.length > 22 ? `${name.slice(0, 21)}…` : name);

/** The tasks by the mean of their queries' vectors; `open` is called with the name of the one that is clicked. */
function map(entries, width, open) {
  const sizes = d3.rollup(entries, (group) => group.length, (entry) => entry.category);
  const named = [...sizes].sort((a, b) => b[1] - a[1] || d3.ascending(a[0], b[0])).slice(0, 9).map(([name]) => name);
  const shownAs = (entry) => (named.includes(entry.category) ? entry.category : "Other categories");
  const domain = sizes.size > named.length ? [...named, "Other categories"] : named;
  const height = Math.min(440, Math.max(300, width * 0.5));
  const scale = (axis, range) => d3.scaleLinear(d3.extent(entries, (entry) => entry.place[axis]), range);
  const at = { x: scale(0, [28, width - 28]), y: scale(1, [height - 28, 28]) };
  const channels = { x: (entry) => entry.place[0], y: (entry) => entry.place[1] };
  const plot = Plot.plot({
    width, height, margin: 16,
    ariaLabel: `${entries.length} tasks by the mean of their queries' vectors, coloured by category.`,
    x: { axis: null, inset: 12 }, y: { axis: null, inset: 12 },
    color: { legend: true, domain, range: [...d3.schemeTableau10.slice(0, named.length), "#8a8d93"] },
    style: { fontSize: "12px", color: "currentColor" },
    marks: [
      Plot.frame({ stroke: "currentColor", strokeOpacity: 0.2 }),
      ...named_on(entries, at).map((few, side) => Plot.text(few, {
        ...channels, ...(side ? { textAnchor: "end", dx: -8 } : { textAnchor: "start", dx: 8 }),
        text: (entry) => shortened(entry.name), fontSize: 11, fillOpacity: 0.75,
      })),
      Plot.dot(entries, { ...channels, fill: shownAs, r: 4.5, fillOpacity: 0.85, stroke: "var(--paper)", strokeWidth: 0.7 }),
      Plot.tip(entries, Plot.pointer({
        ...channels, title: (entry) => `${entry.name}\n${entry.category}, ${many(entry.got, "row")}`,
        fill: "var(--card)", stroke: "var(--line)",
      })),
    ],
  });
  let pointed = null;
  plot.addEventListener("input", () => (pointed = plot.value));
  plot.addEventListener("click", () => pointed && open(pointed.name));
  // A click opens; it does not also pin the tip, as it would in Plot.
  plot.addEventListener("pointerdown", (event) => event.stopPropagation(), true);
  plot.querySelectorAll("svg[aria-label]").forEach((svg) => svg.setAttribute("role", "img"));
  plot.querySelectorAll("svg:not([aria-label])").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
  return plot;
}
