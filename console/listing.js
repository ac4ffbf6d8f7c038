// The table of capabilities: its columns, its pages, and which rows are selected.

import { ask, queryOf } from "./api.js";
import { count, fill, h, plural, refill, say } from "./dom.js";
import { askFor } from "./page.js";
import { linkTo } from "./query.js";
import { day, facet, tableHead } from "./table.js";

const PAGE = 50;
const NAMESPACES = 8;

const COLUMNS = [
  { label: "capability", sort: "id" },
  { label: "trust", sort: "trust", first: "-trust", number: true, title: "assigned by operators, 0 to 100" },
  { label: "updated", sort: "updated", first: "-updated" },
];

/** The ids of the selected rows. */
export function selectedIds(list) {
  return [...list.querySelectorAll("[data-select]:checked")].map((box) => box.dataset.select);
}

/** Fill `list` with the first page for these parameters; the next ones follow on scrolling. `onSelect` runs after a change of the selection. */
export async function showListing(list, params, meaning, { signal, onSelect, above, below }) {
  const first = await askFor(list, address(params, null), signal);
  const body = h("tbody", { class: "rows" });
  const foot = h("p", { class: "foot" });
  const all = h("input", { type: "checkbox", "aria-label": "Select all that are listed", onchange: () => selectAll(body, all.checked, onSelect) });
  const head = tableHead(COLUMNS, "registry", params, params.get("sort") ?? "id");
  head.firstChild.prepend(h("td", {}, all));
  refill(list, namespaces(params, first.facets.namespaces), above,
    h("h2", { class: "hint" }, `${plural(first.total, "capability", "capabilities")}: ${meaning}`),
    h("table", { class: "capabilities", onchange: onSelect }, head, body), foot, below);
  say(`${plural(first.total, "capability", "capabilities")} listed`);
  grow(body, foot, first, params, signal);
  return first.facets;
}

function selectAll(body, isSelected, onSelect) {
  for (const box of body.querySelectorAll("[data-select]")) box.checked = isSelected;
  onSelect();
}

/** The namespaces of what is listed, those with most capabilities, and those chosen. */
function namespaces(params, found) {
  const chosen = params.getAll("ns");
  const others = found.filter(({ namespace }) => !chosen.includes(namespace)).slice(0, NAMESPACES);
  const every = { id: "ns-all", label: "all namespaces", count: "", changes: { ns: [] }, current: chosen.length === 0 };
  const numbers = new Map(found.map(({ namespace, count: number }) => [namespace, number]));
  return facet("Namespaces", "registry", params, [every,
    ...chosen.map((namespace) => ({ id: `ns-${namespace}`, label: namespace, count: numbers.get(namespace) ?? 0, changes: { ns: chosen.filter((one) => one !== namespace) }, current: true, meaning: "remove this filter" })),
    ...others.map(({ namespace, count: number }) => ({ id: `ns-${namespace}`, label: namespace, count: number, changes: { ns: [...chosen, namespace] } }))]);
}

function address(params, after) {
  const query = { show: params.get("show"), kind: params.getAll("kind"), ns: params.getAll("ns"), q: params.get("q"), sort: params.get("sort"), after, limit: PAGE };
  return `registry/capabilities${queryOf(query)}`;
}

/** Append a page of rows; the next one loads when the end of the list scrolls into view. */
function grow(body, foot, { capabilities: rows, following }, params, signal) {
  body.append(...rows.map((one) => row(one, params)));
  if (!following) return void fill(foot, body.children.length ? null : "None.");
  const more = h("button", { type: "button", onclick: next }, "More");
  const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && next(), { rootMargin: "600px" });
  let isLoading = false;
  async function next() {
    if (isLoading || signal.aborted) return;
    isLoading = true;
    watch.disconnect();
    try {
      grow(body, foot, await ask(address(params, following), { signal }), params, signal);
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

function row(one, params) {
  const openHere = (event) => {
    event.currentTarget.href = linkTo("registry", new URLSearchParams(location.hash.split("?")[1] ?? ""), { open: one.id });
  };
  return h("tr", { class: one.status === "rejected" ? "bad" : undefined },
    h("td", { class: "select" }, h("input", { type: "checkbox", "data-select": one.id, "aria-label": `Select ${one.id}` })),
    h("th", { scope: "row" },
      h("a", { class: "name", href: linkTo("registry", params, { open: one.id }), "data-id": one.id, onclick: openHere }, one.name),
      h("span", { class: "about" }, h("span", { class: `kind ${one.kind}` }, one.kind ?? "?"), one.namespace, one.provider && ` by ${one.provider}`,
        one.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
        one.sparse && h("span", { class: "flag quiet" }, one.sparse),
        one.vector_pending && h("span", { class: "flag quiet", title: "found by words until it is encoded" }, "vector pending"),
        one.suspicious.length > 0 && h("span", { class: "flag bad" }, "suspicious")),
      one.error ? h("span", { class: "summary bad" }, one.error) : one.summary && h("span", { class: "summary" }, one.summary)),
    cell("trust", one.trust ?? "–", "number"), cell("updated", day(one.updated)));
}

function cell(label, content, kind) {
  return h("td", { class: kind, "data-label": label }, content);
}
