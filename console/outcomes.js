// The page of outcomes: how often what was found succeeded, as callers reported.

import { count, h, plural } from "./dom.js";
import { lostSection } from "./mirror.js";
import { reportPage } from "./page.js";
import { linkTo } from "./query.js";
import { day, facet, formatTime, interval } from "./table.js";

const SORTS = { failed: "most failures", rate: "lowest success", reported: "most reports", latest: "latest report" };
const MEANINGS = { failed: "was called and failed", wrong: "does something else than what was asked for" };

export const outcomes = reportPage({
  name: "outcomes", title: "Outcomes", command: "mats show", parameter: "sort", standard: "failed", show,
  hint: "What callers reported about results that they were shown. The share of success is of what was called: succeeded or failed.",
});

function show({ totals, capabilities, more, failures }, sort, params) {
  if (!totals.capabilities) return { content: [h("p", {}, "No outcomes yet. Callers report them with ", h("code", {}, "POST /feedback"), ", ", h("code", {}, "report_outcome"), " in MCP, or ", h("code", {}, "mats feedback"), "."), lostSection(params)] };
  const content = [
    h("p", {}, `On ${plural(totals.capabilities, "capability", "capabilities")}: ${words(totals)}.`), shareOf(totals),
    facet("Order", "outcomes", params, Object.entries(SORTS).map(([id, label]) => ({ id: `sort-${id}`, label, count: "", changes: { sort: id === "failed" ? undefined : id }, current: id === sort }))),
    h("h2", {}, "By capability"),
    h("ul", { class: "rows outcomes" }, capabilities.map((one) => capability(one, params))),
    more > 0 && h("p", { class: "foot" }, `${count(more)} more are not listed.`),
    lostSection(params),
    h("h2", {}, "Latest failures"),
    failures.length ? h("ul", { class: "rows failures" }, failures.map((one) => failure(one, params))) : h("p", { class: "hint" }, "None."),
  ];
  return { content, said: `${plural(capabilities.length, "capability", "capabilities")} listed` };
}

function words({ selected, succeeded, failed, wrong }) {
  return `${count(succeeded)} succeeded, ${count(failed)} failed, ${count(wrong)} wrong, ${count(selected)} selected without more`;
}

function shareOf({ rate, low, high }) {
  return interval({ mean: rate, low, high });
}

function link(id, params) {
  return h("a", { class: "name", href: linkTo("outcomes", params, { open: id }), "data-id": id }, id);
}

function capability(one, params) {
  const last = (label, time) => time && h("span", {}, `${label} `, day(time));
  return h("li", {}, link(one.id, params), h("p", { class: "about" }, shareOf(one), h("span", {}, words(one)), last("last success", one.last_success), last("last failure", one.last_failure)));
}

function failure({ id, event, at, text, caller }, params) {
  return h("li", {}, h("p", { class: "about" }, h("span", { class: `flag ${event === "failed" ? "bad" : ""}`, title: MEANINGS[event] }, event), link(id, params), h("time", { datetime: at }, formatTime(at)), h("span", {}, `by ${caller}`)),
    text ? h("p", {}, "Asked for: ", h("a", { href: linkTo("search", "", { q: text }) }, text)) : h("p", { class: "hint" }, "The text of the request is not stored."));
}
