// What callers asked for and did not find.

import { ask } from "./api.js";
import { count, fill, h, plural, say } from "./dom.js";
import { linkTo } from "./query.js";
import { formatTime } from "./table.js";

const DAYS = 30;

/** List the groups of requests that nothing served, each with examples and the nearest capability. */
export async function demand(list, signal) {
  list.setAttribute("aria-busy", "true");
  const found = await ask(`registry/demand?days=${DAYS}`, { signal });
  list.removeAttribute("aria-busy");
  fill(list, h("h2", {}, "Demand"),
    h("p", { class: "hint" }, found.requests ? `${count(found.unmet)} of ${plural(found.requests, "request")} in ${DAYS} days were not served; those with one meaning are grouped.` : "No requests yet.",
      found.ungrouped > 0 && ` ${count(found.ungrouped)} have neither text nor vector.`),
    h("ul", { class: "rows demand" }, found.gaps.map(gap)));
  say(`${plural(found.gaps.length, "group")} listed`);
}

function gap({ name, requests, callers, verdicts, reported, last, examples, nearest }) {
  const verdictTexts = Object.entries(verdicts).map(([verdict, times]) => `${count(times)} ${verdict}`);
  return h("li", {},
    h("h3", { class: "name" }, name || "(texts are not stored)"),
    h("span", { class: "about" }, h("span", { class: "number" }, plural(requests, "request")), h("span", { class: "number" }, `by ${plural(callers, "caller")}`),
      verdictTexts.length > 0 && h("span", {}, verdictTexts.join(", ")), reported > 0 && h("span", { class: "flag" }, `${count(reported)} reported as unserved`),
      h("span", {}, "last ", h("time", { datetime: last }, formatTime(last)))),
    examples.length > 0 && h("ul", {}, examples.map((text) => h("li", {}, h("a", { href: linkTo("search", "", { q: text }) }, text)))),
    nearest && h("span", { class: "about" }, "Nearest: ", h("a", { href: linkTo("registry", "", { view: "demand", open: nearest.id }), "data-id": nearest.id }, nearest.id),
      `, relevance ${nearest.relevance.toFixed(2)}`, nearest.lacks.length > 0 && `; its text lacks ${nearest.lacks.join(", ")}`));
}
