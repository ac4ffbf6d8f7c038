// How often each provider is shown.

import { count, fill, h, percent, plural } from "./dom.js";
import { askFor } from "./page.js";
import { linkTo } from "./query.js";
import { formatTime } from "./table.js";

/** List the providers of the latest answers. */
export async function exposure(list, signal) {
  const report = await askFor(list, "registry/exposure", signal);
  const at = (time) => h("time", { datetime: time }, formatTime(time));
  const span = report.answers ? [`Of the last ${plural(report.answers, "answer")}, from `, at(report.since), " to ", at(report.until), "."] : "No answers yet.";
  fill(list, h("h2", {}, "Exposure by provider"), h("p", { class: "hint" }, span, " Share: of all results shown. First: answers with one at rank 1."),
    report.providers.length > 0 && h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Exposure by provider" },
      h("table", { class: "exposure" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "label" }, "provider"), ["share", "shown", "first", "answers", "candidates", "registered"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, report.providers.map(provider)))));
}

function provider(one) {
  const name = one.provider ? [h("a", { href: linkTo("registry", "", { q: one.provider }) }, one.provider), one.verified ? null : " (claimed)"] : "(not named)";
  return h("tr", {}, h("th", { scope: "row", class: "label" }, name),
    h("td", {}, h("span", { class: "share" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: "part retrieval", "--share": one.share })), percent(one.share, 1))),
    [one.shown, one.first, one.answers, one.candidates, one.registered].map((number) => h("td", {}, count(number))));
}
