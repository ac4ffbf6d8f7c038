// The registry page: all capabilities with their facets, and what can be done with several; providers; sources.

import { hasRegistry, overview, readOnlyReason } from "./api.js";
import { bulkBar, namespaceTrust } from "./bulk.js";
import { count, debounce, h, fill, plural } from "./dom.js";
import { moveKeys } from "./keys.js";
import { selectedIds, showListing } from "./listing.js";
import { known } from "./known.js";
import * as panel from "./panel.js";
import { KINDS, linkTo } from "./query.js";
import { review } from "./review.js";
import { sources } from "./sources.js";

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
const VIEWS = { known, review, sources };

let params, box, list, side, filter, running, seen, actions, trusted;

export const registry = { title: "Registry", open, update, close, keys: { ...moveKeys(() => links()), x: selectFocused, Escape: closePanel } };

async function open(main, given) {
  params = given;
  running = new AbortController();
  box = list = null;
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, readOnlyNotice());
  box = h("div", { class: "overview" });
  list = h("div", { class: "listing" });
  side = h("div", { class: "side" });
  filter = h("input", { type: "search", name: "q", autocomplete: "off", spellcheck: "false", placeholder: "id or provider", id: "filter", oninput: soon });
  actions = bulkBar(() => selectedIds(list), reload);
  seen = trusted = null;
  fill(
    main,
    h("div", { class: "row apart" }, h("h1", {}, "Registry"),
      h("p", { class: "row" }, h("a", { class: "button", href: "#/import" }, "Import"), h("a", { class: "button main", href: "#/edit" }, "Register a capability"))),
    box,
    h("div", { class: "with-side" }, list, side),
  );
  await update(params);
}

function close() {
  soon.stop();
  running?.abort();
  if (box) panel.close(side);
}

async function update(given) {
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
    const counted = overview({ signal }).then((there) => there && refresh(there));
    const view = params.get("view") ?? "";
    await Promise.all([counted, Object.hasOwn(VIEWS, view) ? VIEWS[view](list, signal, reload) : capabilities(signal, counted)]);
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
    h("ul", { class: "tiles" },
      Object.entries(SHOWS).filter(([name]) => name !== PASSING || there.shows[name] > 0 || show === name).map(([name, [label, meaning]]) =>
        tile(`show-${name}`, label, there.shows[name], meaning, linkTo("registry", view ? "" : params, { show: name === "all" ? undefined : name, view: undefined, open: undefined }), show === name)),
      tile("show-sources", "Sources", there.sources, "what mats sync reads again", linkTo("registry", "", { view: "sources" }), view === "sources")),
    h("p", { class: "about" }, `${plural(there.registered, "registration")} in ${there.home}, ${count(there.findable)} findable. Encoder: ${there.encoder}. Writer: ${there.writer ?? "none"}. `,
      h("a", { href: linkTo("registry", "", { view: "known" }) }, "Lessons and synonyms"), " ", h("a", { href: linkTo("registry", "", { view: "review" }) }, "Held changes"),
      there.changes.waiting > 0 && h("span", { class: "flag" }, `${plural(there.changes.waiting, "change")} waiting`),
      there.changes.given_up > 0 && h("span", { class: "flag bad" }, `${plural(there.changes.given_up, "change")} given up`)),
    show !== null && h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "namespace" }, h("span", {}, "Filter"), filter),
      h("fieldset", { class: "kinds" }, h("legend", {}, "Kinds"), KINDS.map((kind) =>
        h("label", { class: "chip" }, h("input", { id: `kind-${kind}`, type: "checkbox", name: "kind", value: kind, checked: kinds.includes(kind), onchange: narrow }), `${kind} `, h("span", { class: "number", id: `count-${kind}` }, count(there.kinds[kind] ?? 0)))))),
  ];
}

function tile(id, label, number = 0, meaning, href, isCurrent) {
  return h("li", {}, h("a", { id, class: "tile", href, title: meaning, "aria-current": isCurrent ? "true" : undefined }, h("strong", {}, count(number)), h("span", {}, label)));
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

async function capabilities(signal, counted) {
  const [namespace, ...others] = params.getAll("ns");
  if (namespace !== trusted?.namespace) trusted = { namespace, form: namespace && namespaceTrust(namespace, reload) };
  const { kinds } = await showListing(list, params, SHOWS[params.get("show") ?? "all"]?.[1] ?? "", { signal, onSelect: actions.show, above: others.length === 0 && trusted?.form, below: actions.bar });
  actions.show();
  await counted;
  for (const kind of KINDS) fill(document.getElementById(`count-${kind}`), count(kinds[kind] ?? 0));
}

/** List what is there after a change. */
async function reload() {
  seen = null;
  await update(params);
}

function links() {
  return [...(list?.querySelectorAll("a.name") ?? [])];
}

function selectFocused() {
  const box = document.activeElement.closest("tr")?.querySelector("[data-select]");
  box?.click();
  return Boolean(box);
}

function closePanel() {
  return panel.leave("registry", params);
}
