// The page of use: what became of each capability in answers, to which others it lost, and what nothing served.

import { ask, hasRegistry, readOnlyNotice } from "./api.js";
import { count, fill, h, plural, time } from "./dom.js";
import { linkTo } from "./query.js";

const COLUMNS = {
  asked: "answers that had it", shown: "answers that had it among the first five", first: "answers that had it first",
  chosen: "answers whose callers took it, whether or not it succeeded", succeeded: "answers whose callers reported that it succeeded",
};

let running;

export const use = { title: "Use", open, update: () => undefined, close: () => running.abort() };

async function open(main) {
  running = new AbortController();
  const { signal } = running;
  if (!(await hasRegistry({ signal }))) return void fill(main, readOnlyNotice("Use"));
  fill(main, h("h1", {}, "Use"), h("p", { class: "hint" }, "Loading…"));
  const found = await ask("registry/use", { signal });
  fill(main, h("h1", {}, "Use"),
    h("p", { class: "hint" }, "From the log of answers and what callers reported on them. Lost to: what served instead, where it was among the first five."),
    h("p", {}, found.answers ? `${plural(found.answers, "answer")} in 30 days.` : "No answers yet."),
    found.capabilities.length > 0 && table("Capabilities", { capability: "", ...COLUMNS, "lost to": "answers that it served instead" },
      found.capabilities.map((one) => [link(one.id), ...Object.keys(COLUMNS).map((name) => count(one[name])),
        one.lost_to.map((rival) => h("div", {}, link(rival.id), ` ${count(rival.answers)}`))]), found.more),
    found.unserved.length > 0 && table("Requests that nothing served", { request: "", requests: "", last: "", nearest: "the best candidate, which did not serve" },
      found.unserved.map((one) => [one.text ? h("a", { href: linkTo("search", "", { q: one.text }) }, one.text) : "(the text is not stored)",
        count(one.requests), time(one.last, { day: true }), one.nearest ? link(one.nearest) : "–"]), found.more_unserved));
}

function link(id) {
  return id ? h("a", { href: linkTo("registry", "", { open: id }) }, id) : "(not visible)";
}

/** A table with a heading; `columns` maps labels to their meanings, and the first cell of a row is its header. */
function table(title, columns, rows, more) {
  return [
    h("h2", {}, title),
    h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": title },
      h("table", {},
        h("thead", {}, h("tr", {}, Object.entries(columns).map(([label, meaning]) => h("th", { scope: "col", title: meaning || undefined }, label)))),
        h("tbody", {}, rows.map(([head, ...cells]) => h("tr", {}, h("th", { scope: "row" }, head), cells.map((cell) => h("td", {}, cell))))))),
    more > 0 && h("p", {}, `${count(more)} more are not listed.`),
  ];
}
