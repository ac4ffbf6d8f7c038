// What tables and lists of several pages share: columns to sort by, facets, intervals, times.

import { count, h, percent } from "./dom.js";
import { linkTo } from "./query.js";

const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

/** A time in local form. */
export function formatTime(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : TIME.format(date);
}

/** A day in local form, with the whole time as its title; a dash without one. */
export function day(time) {
  if (!time) return "–";
  const date = new Date(time);
  const text = Number.isNaN(date.getTime()) ? time : DAY.format(date);
  return h("time", { datetime: time, title: formatTime(time) }, text);
}

/**
 * The head of a table. Columns: `label`; `sort`, the value of the parameter `sort` that orders by it; `first`, that of the
 * first press if it is another one (descending values begin with a minus); `number`; `unseen`: read out only.
 */
export function tableHead(columns, page, params, sorted) {
  return h("thead", {}, h("tr", {}, columns.map(({ label, sort, first = sort, number, unseen, ...more }) => {
    const isSorted = sort !== undefined && sorted.replace(/^-/, "") === sort;
    const order = isSorted ? (sorted.startsWith("-") ? "descending" : "ascending") : undefined;
    const next = !isSorted ? first : sorted.startsWith("-") ? sort : first.startsWith("-") ? `-${sort}` : sort;
    const text = unseen ? h("span", { class: "unseen" }, label) : label;
    return h("th", { scope: "col", "aria-sort": order, class: number ? "number" : undefined, ...more },
      sort === undefined ? text : h("a", { href: linkTo(page, params, { sort: next === "id" ? undefined : next, open: undefined }), id: `sort-${sort}` }, text,
        h("span", { class: "order", "aria-hidden": "true" }, order === "descending" ? " ↓" : order === "ascending" ? " ↑" : "")));
  })));
}

/** A row of links, each with a count; the one in force is marked. Options: `name`, `label`, `count`, `changes` of the address. */
export function facet(title, page, params, options) {
  return h("nav", { class: "facet", "aria-label": title }, h("span", { "aria-hidden": "true" }, title),
    h("ul", {}, options.map(({ id, label, count: number, changes, current, meaning }) =>
      h("li", {}, h("a", { id, href: linkTo(page, params, { ...changes, open: undefined }), title: meaning, "aria-current": current ? "true" : undefined },
        h("span", {}, label), number !== "" && [" ", h("span", { class: "number" }, count(number))])))));
}

/** A share with its 95 % interval, as a bar and in words; `after` says of what. */
export function interval({ mean, low, high }, after = "") {
  if (mean === null || mean === undefined) return h("span", { class: "hint" }, "no result yet");
  return h("span", { class: "interval" },
    h("span", { class: "range", "aria-hidden": "true", "--low": low, "--high": high, "--mean": mean }, h("span", { class: "spread" }), h("span", { class: "point" })),
    h("span", {}, percent(mean), h("span", { class: "hint" }, ` (95 % interval ${percent(low)} to ${percent(high)})${after}`)));
}
