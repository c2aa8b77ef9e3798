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
const color = (name) => `var(--${name})`;

/** The bins of a histogram, [first bin, counts...], as {x1, x2, y (rows), share}. */
function bins(histogram, edges) {
  const [first, ...counts] = histogram;
  const total = counts.reduce((sum, n) => sum + n, 0);
  return counts.map((y, i) => ({ x1: edges[first + i], x2: edges[first + i + 1], y, share: y / total }));
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
  return `${count(total)} ${name}: nine tenths between ${low} and ${high}, the median in ${middle.x1} to ${middle.x2}`;
};

/** A figure with a heading, a plot and the sentence that tells what it shows. */
function figure(title, series, options) {
  const drawn = series.filter((part) => part.histogram);
  if (!drawn.length) return null;
  for (const part of drawn) part.bins = bins(part.histogram, options.edges);
  const sentence = drawn.map((part) => (options.tell ?? words)(part.name, part.bins)).join("; ");
  const lines = options.lines?.(drawn) ?? [];
  const told = [`${sentence}.`, ...lines.map(([at, what]) => `Dashed, at ${at}: ${what}.`)].join(" ");
  const plot = Plot.plot({
    width: options.width, height: 150, marginLeft: 38, marginTop: 10, ariaLabel: `${title}. ${told}`,
    x: { label: options.unit, ticks: 6, ...options.axis?.(drawn) },
    y: { label: null, grid: true, percent: true, ticks: 4, tickFormat: (percent) => `${percent}%` },
    style: { fontSize: "11px", color: "currentColor" },
    marks: [
      ...drawn.map((part) =>
        Plot.rectY(part.bins, {
          x1: "x1", x2: "x2", y: "share", fill: color(part.color), fillOpacity: drawn.length > 1 ? 0.6 : 0.85, inset: 0.5,
          title: (bin) => `${part.name}, ${bin.x1} to ${bin.x2}: ${count(bin.y)}`,
        })),
      Plot.ruleX(lines, { x: (line) => line[0], stroke: "currentColor", strokeDasharray: "4 3" }),
      Plot.ruleY([0]),
    ],
  });
  plot.setAttribute("role", "img");
  const keys = drawn.flatMap((part) => [make("span", { class: `key ${part.color}` }, part.name), " "]);
  const caption = make("figcaption", {}, ...(drawn.length > 1 ? [...keys, make("br")] : []), told);
  return make("figure", {}, make("h4", {}, title), plot, caption);
}

/** All figures of an entry; null where it has no such numbers. */
function figures(entry, { edges, max_length_tokens: most }, width) {
  const { plots } = entry;
  const lines = ([{ bins }]) => (most > bins[0].x1 && most < bins.at(-1).x2 ? [[most, "the encoder reads no further"]] : []);
  const lengths = { edges: edges.tokens, unit: "tokens", axis: powers, width, lines };
  const of = (positives, negatives) => [
    { name: "positives", color: "positive", histogram: plots[positives] },
    { name: "negatives", color: "negative", histogram: plots[negatives] },
  ];
  const cosines = { edges: edges.cosine, unit: "cosine", width, lines: () => entry.lines };
  return [
    figure("Length of queries", [{ name: "queries", color: "plain", histogram: plots.query_tokens }], lengths),
    figure("Length of documents", [{ name: "documents", color: "plain", histogram: plots.document_tokens }], lengths),
    figure("Cosine with the query", of("cosine_positives", "cosine_negatives"), cosines),
    figure("s_pos and s_neg", of("sum_positives", "sum_negatives"), { edges: edges.sum, unit: "score", width }),
    figure("Cosine with the query, of inputs", of("positive_cosines", "negative_cosines"), cosines),
    figure("Place of mined negatives", [{ name: "mined negatives", color: "negative", histogram: plots.negative_ranks }], {
      edges: edges.rank, unit: "place, 1 is nearest", axis: places, width, tell: ranks,
    }),
    labels(entry, width),
  ].filter((found) => found !== null);
}

/** An axis of lengths: each step twice the last, ticks where a bin begins. */
function powers([{ bins }]) {
  const [low, high] = [bins[0].x1, bins.at(-1).x2];
  const ticks = d3.range(0, 14).map((power) => 2 ** power).filter((tick) => tick >= low && tick <= high);
  return { type: "log", domain: [low, high], ticks: ticks.length > 1 ? ticks : [low, high], tickFormat: "d" };
}

/** An axis of places: whole numbers, and never so few that one bar fills it. */
function places([{ bins }]) {
  const last = Math.max(8, bins.at(-1).x1);
  const step = Math.ceil(last / 8);
  return { domain: [1, last + 1], ticks: d3.range(1, last + 1, step).map((place) => place + 0.5), tickFormat: (x) => x - 0.5 };
}

function ranks(name, rows) {
  const total = rows.reduce((sum, bin) => sum + bin.y, 0);
  const nearest = rows.find((bin) => bin.x1 === 1)?.y ?? 0;
  return `${count(total)} ${name}: ${Math.round((100 * nearest) / total)}% are the nearest candidate, the last is number ${rows.at(-1).x1}`;
}

/** How the rows of a label task are spread over its labels. */
function labels(entry, width) {
  if (!entry.labels.length) return null;
  const total = entry.got;
  const short = (label) => (label.length > 18 ? `${label.slice(0, 17)}…` : label);
  const sentence = entry.labels.map(([label, n]) => `${label} ${count(n)} (${Math.round((100 * n) / total)}%)`).join(", ");
  const rest = entry.labels_in_all - entry.labels.length;
  const told = `${sentence}${rest ? `, and ${rest} labels more` : ""}`;
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

/** The tasks by the mean of their queries' vectors; `open` is called with the name of the one that is clicked. */
function map(entries, width, open) {
  const sizes = d3.rollup(entries, (group) => group.length, (entry) => entry.category);
  const named = [...sizes].sort((a, b) => b[1] - a[1] || d3.ascending(a[0], b[0])).slice(0, 9).map(([name]) => name);
  const shownAs = (entry) => (named.includes(entry.category) ? entry.category : "Other categories");
  const domain = sizes.size > named.length ? [...named, "Other categories"] : named;
  const at = { x: (entry) => entry.place[0], y: (entry) => entry.place[1] };
  const plot = Plot.plot({
    width, height: Math.min(520, Math.max(300, width * 0.55)), margin: 16,
    ariaLabel: `${entries.length} tasks by the mean of their queries' vectors, coloured by category.`,
    x: { axis: null, inset: 12 }, y: { axis: null, inset: 12 },
    color: { legend: true, domain, range: [...d3.schemeTableau10.slice(0, named.length), "#8a8d93"] },
    style: { fontSize: "12px", color: "currentColor" },
    marks: [
      Plot.frame({ stroke: "currentColor", strokeOpacity: 0.2 }),
      Plot.dot(entries, { ...at, fill: shownAs, r: 4.5, fillOpacity: 0.85, stroke: "var(--paper)", strokeWidth: 0.7 }),
      Plot.tip(entries, Plot.pointer({
        ...at, title: (entry) => `${entry.name}\n${entry.category}, ${count(entry.got)} rows`, fill: "var(--card)", stroke: "var(--line)",
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
