// The page of use: what became of each capability in answers, to which others it lost, and what nothing served.

import { count, h, plural } from "./dom.js";
import { reportPage } from "./page.js";
import { linkTo } from "./query.js";
import { day, facet } from "./table.js";

const DAYS = [7, 30, 90];
const COLUMNS = {
  asked: "answers that had it", shown: "answers that had it among the first five", first: "answers that had it first",
  chosen: "answers whose callers reported on it", succeeded: "answers whose callers reported that it succeeded",
};

export const use = reportPage({
  name: "use", title: "Use", command: "mats use", parameter: "days", standard: "30", show,
  hint: "From the log of answers and what callers reported on them. Lost to: what served instead, where it was among the first five.",
});

function show(found, days, params) {
  const link = (id) => (id ? h("a", { class: "name", href: linkTo("use", params, { open: id }), "data-id": id }, id) : "(not visible)");
  const content = [
    facet("Time", "use", params, DAYS.map((one) => ({ id: `days-${one}`, label: `${one} days`, count: "", changes: { days: one === 30 ? undefined : one }, current: String(one) === days }))),
    h("p", {}, found.answers ? `${plural(found.answers, "answer")} in ${days} days.` : "No answers yet."),
    found.capabilities.length > 0 && table("Capabilities", { capability: "", ...COLUMNS, "lost to": "answers that it served instead" },
      found.capabilities.map((one) => [link(one.id), ...Object.keys(COLUMNS).map((name) => count(one[name])),
        h("ul", { class: "plain" }, one.lost_to.map((rival) => h("li", {}, link(rival.id), ` ${count(rival.answers)}`)))]), found.more),
    found.unserved.length > 0 && table("Requests that nothing served", { request: "", requests: "", last: "", nearest: "the best candidate, which did not serve" },
      found.unserved.map((one) => [one.text ? h("a", { href: linkTo("search", "", { q: one.text }) }, one.text) : "(the text is not stored)",
        count(one.requests), day(one.last), one.nearest ? link(one.nearest) : "–"]), found.more_unserved),
  ];
  return { content, said: `${plural(found.capabilities.length, "capability", "capabilities")} listed` };
}

/** A table with a heading; `columns` maps labels to their meanings, and the first cell of a row is its header. */
function table(title, columns, rows, more) {
  return [
    h("h2", {}, title),
    h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": title },
      h("table", { class: "use" },
        h("thead", {}, h("tr", {}, Object.entries(columns).map(([label, meaning]) => h("th", { scope: "col", title: meaning || undefined }, label)))),
        h("tbody", {}, rows.map(([head, ...cells]) => h("tr", {}, h("th", { scope: "row" }, head), cells.map((cell) => h("td", {}, cell))))))),
    more > 0 && h("p", { class: "foot" }, `${count(more)} more are not listed.`),
  ];
}
