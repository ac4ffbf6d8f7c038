// The home page, below the search box: kinds, and what is new.

import { ask, hasRegistry } from "./api.js";
import { count, h, plural } from "./dom.js";
import { linkTo } from "./query.js";
import { day } from "./table.js";

const NEWEST = 6;
const TRIES = ["refund a customer's card payment", "turn a street address into coordinates", "summarise a long contract"];

/** The page: examples of requests, and what the registry of this service has, if it has one. */
export async function home(signal) {
  if (!(await hasRegistry({ signal }))) return [welcome()];
  const paths = ["registry", `registry/capabilities?sort=-registered&limit=${NEWEST}`];
  const [counts, page] = await Promise.all(paths.map((path) => ask(path, { signal })));
  return [welcome(), h("div", { class: "parts-of-home" }, kinds(counts), newest(page.capabilities))];
}

/** Examples of requests. */
export function welcome() {
  return h("div", { class: "welcome" },
    h("p", {}, "Describe the task in your own words. The shortlist shows which models, agents, tools and skills fit, and why. Nothing is invoked."),
    h("ul", { class: "plain" }, TRIES.map((q) => h("li", {}, h("a", { href: linkTo("search", "", { q }) }, q)))));
}

function part(title, href, label, ...content) {
  return h("section", { "aria-label": title }, h("h2", {}, title), content, h("p", {}, h("a", { href }, label)));
}

function kinds({ kinds: numbers, registered }) {
  return part("Kinds", "#/registry", `All ${plural(registered, "capability", "capabilities")}`,
    h("ul", { class: "tiles" }, Object.entries(numbers).map(([kind, number]) =>
      h("li", {}, h("a", { class: "tile", href: linkTo("registry", "", { kind }) }, h("strong", {}, count(number)), h("span", {}, number === 1 ? kind : `${kind}s`))))));
}

function newest(rows) {
  return part("New", linkTo("registry", "", { sort: "-updated" }), "Latest changes",
    rows.length ? h("ul", { class: "brief" }, rows.map(({ id, name, kind, namespace, registered }) =>
      h("li", {}, h("a", { href: linkTo("registry", "", { open: id }) }, name), " ", h("span", { class: `kind ${kind}` }, kind ?? "?"), h("span", { class: "hint" }, " ", namespace, registered && [", ", day(registered)]))))
      : h("p", { class: "hint" }, "Nothing is registered yet. ", h("a", { href: "#/import" }, "Import a document"), "."));
}
