// The home page, below the search box: kinds, what is new, what was asked for and not found.

import { ask, hasRegistry } from "./api.js";
import { count, h, plural } from "./dom.js";
import { linkTo } from "./query.js";
import { day } from "./table.js";

const TRIES = ["refund a customer's card payment", "turn a street address into coordinates", "summarise a long contract"];

/** The page: examples of requests, and what the registry of this service has, if it has one. */
export async function home(signal) {
  const found = (await hasRegistry({ signal })) ? await ask("registry/home", { signal }) : null;
  return [welcome(), found && h("div", { class: "parts-of-home" }, kinds(found), newest(found), unmet(found), neverFound(found))];
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

function newest({ newest: rows }) {
  return part("New", linkTo("registry", "", { sort: "-updated" }), "Latest changes",
    rows.length ? h("ul", { class: "brief" }, rows.map(({ id, name, kind, namespace, registered }) =>
      h("li", {}, h("a", { href: linkTo("registry", "", { open: id }) }, name), " ", h("span", { class: `kind ${kind}` }, kind ?? "?"), h("span", { class: "hint" }, " ", namespace, registered && [", ", day(registered)]))))
      : h("p", { class: "hint" }, "Nothing is registered yet. ", h("a", { href: "#/import" }, "Import a document"), "."));
}

function neverFound({ never_found: { count: number, ids } }) {
  return number > 0 && part("Registered and never found", "#/outcomes", "What is not found, and why",
    h("p", { class: "hint" }, `${plural(number, "capability was", "capabilities were")} never among the first five results in 30 days.`),
    h("ul", { class: "brief" }, ids.map((id) => h("li", {}, h("a", { href: linkTo("outcomes", "", { open: id }) }, id)))));
}

function unmet({ demand, answers, unmatched }) {
  const lead = answers ? `${count(unmatched)} of ${plural(answers, "answer")} in 30 days had no clear match.` : "No requests in 30 days.";
  return part("Asked for and not found", "#/demand", "All demand", h("p", { class: "hint" }, lead),
    demand === null && h("p", { class: "hint" }, "The groups are being computed; look again in a minute."),
    demand?.length > 0 && h("ul", { class: "brief" }, demand.map(({ name, requests, callers, examples }) =>
      h("li", {}, examples.length ? h("a", { href: linkTo("search", "", { q: examples[0] }) }, examples[0]) : name || "(texts are not stored)",
        h("span", { class: "hint" }, ` ${plural(requests, "request")} by ${plural(callers, "caller")}`)))));
}
