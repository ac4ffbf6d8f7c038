// The page of demand: what callers asked for and did not find.

import { count, h, plural } from "./dom.js";
import { reportPage } from "./page.js";
import { linkTo } from "./query.js";
import { day, facet } from "./table.js";

const DAYS = [7, 30, 90];
const VERDICTS = { none: "found nothing", weak: "found no clear match", match: "found a match, which did not serve" };

export const demand = reportPage({
  name: "demand", title: "Demand", command: "mats demand", parameter: "days", standard: "30", show,
  hint: "Requests of callers that nothing served; those with one meaning are one group.",
});

function show(found, days, params) {
  const content = [
    facet("Time", "demand", params, DAYS.map((one) => ({ id: `days-${one}`, label: `${one} days`, count: "", changes: { days: one === 30 ? undefined : one }, current: String(one) === days }))),
    h("p", {}, found.requests ? `${count(found.unmet)} of ${plural(found.requests, "request")} in ${days} days were not served.` : "No requests yet.",
      found.ungrouped > 0 && ` ${count(found.ungrouped)} have neither text nor vector.`),
    found.requests > 0 && found.gaps.length === 0 && h("p", { class: "hint" }, "No group yet: it takes two requests with one meaning, or a caller who says what is missing."),
    h("ul", { class: "rows demand" }, found.gaps.map((one) => gap(one, params))),
  ];
  return { content, said: `${plural(found.gaps.length, "group")} listed` };
}

function gap({ name, requests, callers, verdicts, reported, first, last, examples, nearest }, params) {
  const answers = Object.entries(verdicts).map(([verdict, times]) => `${count(times)} ${VERDICTS[verdict] ?? verdict}`);
  return h("li", {},
    h("h2", { class: "name" }, name || "(texts are not stored)"),
    h("p", { class: "about" }, h("span", { class: "number" }, plural(requests, "request")), h("span", { class: "number" }, `by ${plural(callers, "caller")}`),
      answers.length > 0 && h("span", {}, answers.join(", ")), reported > 0 && h("span", { class: "flag" }, `${count(reported)} reported as unserved`),
      h("span", {}, "first ", day(first), ", last ", day(last))),
    examples.length > 0 && h("ul", { class: "plain", "aria-label": "Examples" }, examples.map((text) => h("li", {}, h("a", { href: linkTo("search", "", { q: text }) }, text)))),
    nearest && h("p", { class: "about" }, h("span", {}, "Nearest: ", h("a", { class: "name", href: linkTo("demand", params, { open: nearest.id }), "data-id": nearest.id }, nearest.id)),
      h("span", {}, reason(nearest))),
    examples.length > 0 && h("p", {}, h("a", { href: linkTo("edit", "", { examples }) }, "Register what serves this")));
}

/** Why the nearest capability did not serve. */
function reason({ relevance, lacks }) {
  const words = lacks.length > 0 ? `its text does not mention ${lacks.join(", ")}` : "its text has the words, not the meaning";
  return `did not fit: relevance ${relevance.toFixed(2)} of 1; ${words}`;
}
