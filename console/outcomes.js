// The page of outcomes: how often what was found succeeded, as callers reported.

import { ask, hasRegistry } from "./api.js";
import { count, fill, h, plural, say } from "./dom.js";
import { notHere } from "./page.js";
import * as panel from "./panel.js";
import { linkTo } from "./query.js";
import { day, facet, formatTime, interval } from "./table.js";

const SORTS = { failed: "most failures", rate: "lowest success", reported: "most reports", latest: "latest report" };
const MEANINGS = { failed: "was called and failed", wrong: "does something else than what was asked for" };

let params, list, side, running, seen;

export const outcomes = { title: "Outcomes", open, update, close, keys: { Escape: () => panel.leave("outcomes", params) } };

async function open(main, given) {
  running = new AbortController();
  list = seen = null;
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, notHere("Outcomes", "mats show"));
  list = h("div", { class: "listing" });
  side = h("div", { class: "side" });
  fill(main, h("h1", {}, "Outcomes"), h("p", { class: "hint" }, "What callers reported about results that they were shown. The share of success is of what was called: succeeded or failed."), h("div", { class: "with-side" }, list, side));
  await update(given);
}

function close() {
  running?.abort();
  if (list) panel.close(side);
}

async function update(given) {
  params = given;
  if (!list) return;
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const sort = params.get("sort") ?? "failed";
  if (seen !== sort) {
    list.setAttribute("aria-busy", "true");
    const found = await ask(`registry/outcomes?${new URLSearchParams({ sort })}`, { signal });
    list.removeAttribute("aria-busy");
    show(found, sort);
    seen = sort;
  }
  await panel.show(side, params.get("open"), { away: () => panel.leave("outcomes", params), signal });
}

function show({ totals, capabilities, more, failures }, sort) {
  const focused = list.contains(document.activeElement) ? document.activeElement.id : "";
  if (!totals.capabilities) return void fill(list, h("p", {}, "No outcomes yet. Callers report them with ", h("code", {}, "POST /feedback"), ", ", h("code", {}, "report_outcome"), " in MCP, or ", h("code", {}, "mats feedback"), "."));
  fill(list,
    h("p", {}, `On ${plural(totals.capabilities, "capability", "capabilities")}: ${words(totals)}.`), shareOf(totals),
    facet("Order", "outcomes", params, Object.entries(SORTS).map(([id, label]) => ({ id: `sort-${id}`, label, count: "", changes: { sort: id === "failed" ? undefined : id }, current: id === sort }))),
    h("h2", {}, "By capability"),
    h("ul", { class: "rows outcomes" }, capabilities.map(capability)),
    more > 0 && h("p", { class: "foot" }, `${count(more)} more are not listed.`),
    h("h2", {}, "Latest failures"),
    failures.length ? h("ul", { class: "rows failures" }, failures.map(failure)) : h("p", { class: "hint" }, "None."));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  say(`${plural(capabilities.length, "capability", "capabilities")} listed`);
}

function words({ selected, succeeded, failed, wrong }) {
  return `${count(succeeded)} succeeded, ${count(failed)} failed, ${count(wrong)} wrong, ${count(selected)} selected without more`;
}

function shareOf({ rate, low, high }) {
  return interval({ mean: rate, low, high });
}

function link(id) {
  return h("a", { class: "name", href: linkTo("outcomes", params, { open: id }), "data-id": id }, id);
}

function capability(one) {
  const last = (label, time) => time && h("span", {}, `${label} `, day(time));
  return h("li", {}, link(one.id), h("p", { class: "about" }, shareOf(one), h("span", {}, words(one)), last("last success", one.last_success), last("last failure", one.last_failure)));
}

function failure({ id, event, at, text, caller }) {
  return h("li", {}, h("p", { class: "about" }, h("span", { class: `flag ${event === "failed" ? "bad" : ""}`, title: MEANINGS[event] }, event), link(id), h("time", { datetime: at }, formatTime(at)), h("span", {}, `by ${caller}`)),
    text ? h("p", {}, "Asked for: ", h("a", { href: linkTo("search", "", { q: text }) }, text)) : h("p", { class: "hint" }, "The text of the request is not stored."));
}
