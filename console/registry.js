// The registry page: all capabilities with their counts, filters and columns, and the trust of a namespace.

import { ask, hasRegistry, overview, queryOf, readOnlyNotice } from "./api.js";
import { count, h, fill, plural, refill, say, setText, time } from "./dom.js";
import * as panel from "./panel.js";
import { KINDS, linkTo } from "./query.js";
import { trustForm } from "./trust.js";

const SHOWS = {
  all: ["All", "all registrations"],
  sparse: ["Sparse", "description too short to be found well"],
  rejected: ["Rejected", "the latest registration is invalid"],
  suspicious: ["Suspicious", "the text needs a review"],
  deprecated: ["Deprecated", "still found, marked"],
  unenriched: ["As registered", "not enriched by an LLM"],
  uncallable: ["No way to call", "nothing registered says how to call it"],
  pending: ["Vector pending", "found by words until it is encoded"],
};
const PASSING = "pending"; // shown only while there is one
const COLUMNS = { id: "capability", trust: "trust", updated: "updated" };
const PAGE = 50;

let params, box, list, side, filter, namespace, kinds, running, seen;

export const registry = { title: "Registry", open, update, close, links: () => [...(list?.querySelectorAll("a.name") ?? [])], escape: closePanel };

async function open(main, given) {
  params = given;
  running = new AbortController();
  box = seen = null;
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, readOnlyNotice("Registry"));
  box = h("div", {});
  list = h("div", {});
  side = h("div", { class: "side" });
  filter = h("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "id or provider", id: "filter", onchange: narrow });
  namespace = h("input", { autocomplete: "off", spellcheck: "false", placeholder: "com.acme", id: "namespace", onchange: narrow });
  kinds = KINDS.map((kind) => h("input", { id: `kind-${kind}`, type: "checkbox", value: kind, onchange: narrow }));
  fill(
    main,
    h("div", { class: "row apart" }, h("h1", {}, "Registry"), h("a", { class: "button main", href: "#/edit" }, "Register a capability")),
    box,
    h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "row" }, "Filter", filter), h("label", { class: "row" }, "Namespace", namespace),
      h("fieldset", { class: "kinds" }, h("legend", { class: "unseen" }, "Kinds"), kinds.map((input) => h("label", { class: "chip" }, input, input.value)))),
    h("div", {}, list, side),
  );
  await update(params);
}

function close() {
  running?.abort();
  if (box) panel.close(side);
}

async function update(given) {
  params = given;
  if (!box) return; // still loading, or not to be read with this token
  setText(filter, params.get("q") ?? "");
  setText(namespace, params.getAll("ns").join(", "));
  for (const input of kinds) input.checked = params.getAll("kind").includes(input.value);
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const state = JSON.stringify([...params].filter(([name]) => name !== "open"));
  if (state !== seen) {
    list.setAttribute("aria-busy", "true");
    const [there, first] = await Promise.all([overview({ signal }), ask(address(null), { signal })]);
    list.removeAttribute("aria-busy");
    if (there) refill(box, head(there));
    showListing(first, signal);
    seen = state;
  }
  await panel.show(side, params.get("open"), { away: closePanel, signal });
}

function address(after) {
  const query = { show: params.get("show"), kind: params.getAll("kind"), ns: params.getAll("ns"), q: params.get("q"), sort: params.get("sort"), after, limit: PAGE };
  return `registry/capabilities${queryOf(query)}`;
}

function head(there) {
  const show = params.get("show") ?? "all";
  return [
    h("ul", { class: "tiles" }, Object.entries(SHOWS).filter(([name]) => name !== PASSING || there.shows[name] > 0 || show === name).map(([name, [label, meaning]]) =>
      h("li", {}, h("a", { id: `show-${name}`, class: "tile", href: link({ show: name === "all" ? undefined : name }), title: meaning, "aria-current": show === name ? "true" : undefined },
        h("strong", {}, count(there.shows[name])), h("span", {}, label))))),
    h("p", { class: "about" }, `${plural(there.registered, "registration")} in ${there.home}, ${count(there.findable)} findable. Encoder: ${there.encoder}. Writer: ${there.writer ?? "none"}.`,
      there.changes.waiting > 0 && h("span", { class: "flag" }, `${plural(there.changes.waiting, "change")} waiting`),
      there.changes.given_up > 0 && h("span", { class: "flag bad" }, `${plural(there.changes.given_up, "change")} given up`)),
  ];
}

/** The address of this page with changes; the panel closes. */
function link(changes) {
  return linkTo("registry", params, { ...changes, open: undefined });
}

/** Apply the filters through the address; the boxes are not changed. */
function narrow() {
  const kind = kinds.filter((input) => input.checked).map((input) => input.value);
  location.hash = link({ q: filter.value.trim(), ns: namespace.value.split(",").map((one) => one.trim()), kind });
}

/** Fill the list with its first page. */
function showListing(first, signal) {
  const chosen = params.getAll("ns");
  const total = plural(first.total, "capability", "capabilities");
  const body = h("tbody", {});
  const foot = h("p", {});
  refill(list,
    chosen.length === 1 && h("details", {}, h("summary", {}, `Trust of ${chosen[0]} and all below it`), trustForm(chosen[0], { changed: reload })),
    h("h2", { class: "hint" }, `${total}: ${SHOWS[params.get("show") ?? "all"][1]}`),
    h("table", { class: "capabilities" }, h("thead", {}, h("tr", {}, Object.entries(COLUMNS).map(column))), body), foot);
  say(`${total} listed`);
  grow(body, foot, first, signal);
}

/** The head of a column; values descend at its first press, ids ascend. */
function column([sort, label]) {
  const now = params.get("sort") ?? "id";
  const isSorted = now.replace("-", "") === sort;
  const next = sort === "id" ? undefined : now === `-${sort}` ? sort : `-${sort}`;
  const order = !isSorted ? undefined : now.startsWith("-") ? "descending" : "ascending";
  return h("th", { scope: "col", "aria-sort": order, class: sort }, h("a", { id: `sort-${sort}`, href: link({ sort: next }) }, label,
    order && h("span", { "aria-hidden": "true" }, order === "descending" ? " ↓" : " ↑")));
}

/** Append a page of rows, and a button for the next one. */
function grow(body, foot, { capabilities, following }, signal) {
  body.append(...capabilities.map(row));
  if (!following) return void fill(foot, body.children.length ? null : "None.");
  const more = h("button", { type: "button", onclick: next }, "More");
  fill(foot, more);
  async function next() {
    more.disabled = true;
    try {
      grow(body, foot, await ask(address(following), { signal }), signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      more.disabled = false;
      fill(foot, h("span", { class: "notice bad" }, error.message), " ", more);
    }
  }
}

function row(one) {
  const openHere = (event) => event.currentTarget.setAttribute("href", linkTo("registry", params, { open: one.id }));
  return h("tr", {},
    h("th", { scope: "row" },
      h("a", { class: "name", href: linkTo("registry", params, { open: one.id }), "data-id": one.id, onclick: openHere }, one.name),
      h("span", { class: "about" }, h("span", { class: "kind" }, one.kind ?? "?"), one.namespace, one.provider && ` by ${one.provider}`,
        one.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
        one.sparse && h("span", { class: "flag quiet" }, one.sparse),
        one.vector_pending && h("span", { class: "flag quiet", title: "found by words until it is encoded" }, "vector pending"),
        one.suspicious.length > 0 && h("span", { class: "flag bad" }, "suspicious")),
      one.error ? h("span", { class: "summary bad" }, one.error) : one.summary && h("span", { class: "summary" }, one.summary)),
    h("td", { "data-label": "trust" }, one.trust ?? "–"), h("td", { "data-label": "updated" }, time(one.updated, { day: true })));
}

/** List what is there after a change. */
async function reload() {
  seen = null;
  await update(params);
}

function closePanel() {
  return panel.leave("registry", params);
}
