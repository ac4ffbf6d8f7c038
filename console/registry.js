// The registry page: all capabilities, filters for those with problems, and exposure by provider.

import { ask, overview, queryOf, readOnlyReason } from "./api.js";
import { demand } from "./demand.js";
import { count, debounce, h, fill, percent, plural, say } from "./dom.js";
import { moveKeys } from "./keys.js";
import * as panel from "./panel.js";
import { KINDS, linkTo } from "./query.js";
import { sources } from "./sources.js";
import { formatTime } from "./table.js";

const SHOWS = {
  all: ["All", "all registrations"],
  sparse: ["Sparse", "description too short to be found well"],
  rejected: ["Rejected", "the latest registration is invalid"],
  suspicious: ["Suspicious", "the text needs a review"],
  deprecated: ["Deprecated", "still found, marked"],
  unenriched: ["As registered", "not enriched by an LLM"],
  uncallable: ["No way to call", "nothing registered says how to call it"],
};
const PAGE = 50;
const VIEWS = { exposure, sources: (signal) => sources(list, signal), demand: (signal) => demand(list, signal) };

let params, box, list, side, filter, running, seen;

export const registry = { title: "Registry", open, update, close, keys: { ...moveKeys(() => links()), Escape: closePanel } };

async function open(main, given) {
  params = given;
  running = new AbortController();
  box = list = null;
  const there = await overview({ signal: running.signal });
  if (!there) return void fill(main, readOnlyNotice());
  box = h("div", { class: "overview" });
  list = h("div", { class: "listing" });
  side = h("div", { class: "side" });
  filter = h("input", { type: "search", name: "q", autocomplete: "off", spellcheck: "false", placeholder: "id or provider", id: "filter", oninput: soon });
  seen = null;
  fill(
    main,
    h("div", { class: "row apart" }, h("h1", {}, "Registry"), h("a", { class: "button main", href: "#/edit" }, "Register a capability")),
    box,
    h("div", { class: "with-side" }, list, side),
  );
  await update(params, there);
}

function close() {
  soon.stop();
  running?.abort();
  if (box) panel.close(side);
}

async function update(given, there) {
  params = given;
  if (!box) return; // still loading, or the registry is in AWS
  soon.stop();
  const text = params.get("q") ?? "";
  if (filter.value.trim() !== text) filter.value = text;
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const state = JSON.stringify([...params].filter(([name]) => name !== "open"));
  if (state !== seen) {
    refresh(there ?? (await overview({ signal })));
    const view = params.get("view") ?? "";
    await (Object.hasOwn(VIEWS, view) ? VIEWS[view] : capabilities)(signal);
    seen = state;
  }
  await panel.show(side, params.get("open"), { away: closePanel, signal });
}

function readOnlyNotice() {
  return [
    h("h1", {}, "Registry"),
    h("div", { class: "notice" }, readOnlyReason() ? h("p", {}, `Nothing to see or to change here: ${readOnlyReason()}.`) : [
      h("p", {}, "This service is read-only. Registrations are items of the Registry table in DynamoDB; the Profiles table holds the profile of each, or its error."),
      h("p", {}, "To preview a registration, run ", h("code", {}, "mats preview"), " or this console on your own machine with ", h("code", {}, "mats serve"), "."),
    ]),
  ];
}

function head(there) {
  const view = Object.hasOwn(VIEWS, params.get("view") ?? "") ? params.get("view") : null;
  const show = view ? null : (params.get("show") ?? "all");
  const kinds = params.getAll("kind");
  return [
    h("ul", { class: "tiles" }, Object.entries(SHOWS).map(([name, [label, meaning]]) =>
      h("li", {}, h("a", { id: `show-${name}`, class: `tile ${name}`, href: linkTo("registry", params, { show: name === "all" ? undefined : name, view: undefined, open: undefined }), title: meaning, "aria-current": show === name ? "true" : undefined },
        h("strong", {}, count(there.shows[name] ?? 0)), h("span", {}, label)))),
      h("li", {}, h("a", { id: "show-providers", class: "tile", href: linkTo("registry", "", { view: "exposure" }), title: "exposure by provider", "aria-current": view === "exposure" ? "true" : undefined },
        h("strong", {}, count(there.providers ?? 0)), h("span", {}, "Providers"))),
      h("li", {}, h("a", { id: "show-sources", class: "tile", href: linkTo("registry", "", { view: "sources" }), title: "what mats sync reads again", "aria-current": view === "sources" ? "true" : undefined },
        h("strong", {}, count(there.sources ?? 0)), h("span", {}, "Sources"))),
      h("li", {}, h("a", { id: "show-demand", class: "tile", href: linkTo("registry", "", { view: "demand" }), title: "requests that nothing served", "aria-current": view === "demand" ? "true" : undefined },
        h("strong", {}, count(there.unmatched ?? 0)), h("span", {}, "Demand")))),
    h("p", { class: "about" }, `${plural(there.registered, "registration")} in ${there.home}, ${count(there.findable)} findable. Encoder: ${there.encoder}. Writer: ${there.writer ?? "none"}.`,
      there.changes.waiting > 0 && h("span", { class: "flag" }, `${plural(there.changes.waiting, "change")} waiting`),
      there.changes.given_up > 0 && h("span", { class: "flag bad" }, `${plural(there.changes.given_up, "change")} given up`)),
    show !== null && h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "namespace" }, h("span", {}, "Filter"), filter),
      h("fieldset", { class: "kinds" }, h("legend", {}, "Kinds"), KINDS.map((kind) =>
        h("label", { class: "chip" }, h("input", { id: `kind-${kind}`, type: "checkbox", name: "kind", value: kind, checked: kinds.includes(kind), onchange: narrow }), `${kind} `, h("span", { class: "number" }, count(there.kinds[kind] ?? 0)))))),
  ];
}

/** Apply the filter through the address; the box is not changed. */
function narrow() {
  const kinds = [...box.querySelectorAll("[name=kind]:checked")].map((one) => one.value);
  location.hash = linkTo("registry", params, { q: filter.value.trim(), kind: kinds, open: undefined });
}
const soon = debounce(() => narrow(), 250);

/** Rebuild the head with new counts, without losing the focus. */
function refresh(there) {
  const at = box.contains(document.activeElement) ? document.activeElement.id : "";
  fill(box, head(there));
  if (at) document.getElementById(at)?.focus({ preventScroll: true });
}

async function capabilities(signal) {
  const table = h("ul", { class: "rows" });
  const foot = h("p", { class: "foot" });
  list.setAttribute("aria-busy", "true");
  const first = await page(null, signal);
  list.removeAttribute("aria-busy");
  fill(list, h("h2", { class: "hint" }, `${plural(first.total, "capability", "capabilities")}: ${SHOWS[params.get("show") ?? "all"]?.[1] ?? ""}`), table, foot);
  say(`${plural(first.total, "capability", "capabilities")} listed`);
  grow(table, foot, first, signal);
}

function page(after, signal) {
  const query = { show: params.get("show"), kind: params.getAll("kind"), q: params.get("q"), after, limit: PAGE };
  return ask(`registry/capabilities${queryOf(query)}`, { signal });
}

/** Append a page of rows; the next one loads when the end of the list scrolls into view. */
function grow(table, foot, { capabilities: rows, following }, signal) {
  table.append(...rows.map(row));
  if (!following) {
    fill(foot, rows.length || table.children.length ? null : "None.");
    return;
  }
  const more = h("button", { type: "button", onclick: next }, "More");
  const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && next(), { rootMargin: "600px" });
  let isLoading = false;
  async function next() {
    if (isLoading || signal.aborted) return;
    isLoading = true;
    watch.disconnect();
    try {
      grow(table, foot, await page(following, signal), signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      isLoading = false;
      fill(foot, h("span", { class: "notice bad" }, error.message), " ", more);
    }
  }
  fill(foot, more);
  watch.observe(more);
  signal.addEventListener("abort", () => watch.disconnect());
}

function row(one) {
  return h(
    "li",
    { class: one.status === "rejected" ? "bad" : undefined },
    h("a", { class: "name", href: linkTo("registry", params, { open: one.id }), "data-id": one.id, onclick: openHere }, one.name),
    h("span", { class: "about" }, h("span", { class: `kind ${one.kind}` }, one.kind ?? "?"), one.namespace, one.provider && ` by ${one.provider}`,
      one.trust !== null && h("span", { class: "number" }, `trust ${one.trust}`),
      one.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
      one.sparse && h("span", { class: "flag quiet" }, one.sparse),
      one.suspicious.length > 0 && h("span", { class: "flag bad" }, "suspicious")),
    one.error ? h("span", { class: "summary bad" }, one.error) : one.summary && h("span", { class: "summary" }, one.summary),
  );
}

function openHere(event) {
  event.currentTarget.href = linkTo("registry", params, { open: event.currentTarget.dataset.id });
}

function links() {
  return [...(list?.querySelectorAll("a.name") ?? [])];
}

function closePanel() {
  return panel.leave("registry", params);
}

async function exposure(signal) {
  list.setAttribute("aria-busy", "true");
  const report = await ask("registry/exposure", { signal });
  list.removeAttribute("aria-busy");
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
