// The owner's mirror: what was asked of a capability, to what it lost requests and why, and of all what is not found.

import { ask } from "./api.js";
import { count, facts, fill, h, plural, section } from "./dom.js";
import { linkTo } from "./query.js";

/** A section that asks the service once it is unfolded, which may take seconds. */
function unfolding(title, label, query, show) {
  const shown = h("div", {}, h("p", { class: "hint" }, "Searching the logged requests again…"));
  let asked = false;
  return section(title, h("details", { ontoggle: load }, h("summary", {}, label), shown));

  async function load(event) {
    if (!event.currentTarget.open || asked) return;
    asked = true;
    try {
      fill(shown, show(await ask(`registry/mirror?${new URLSearchParams(query)}`)));
    } catch (error) {
      asked = false;
      fill(shown, h("p", { class: "notice bad" }, error.message));
    }
  }
}

/** The section of a capability's panel. */
export function mirrorSection(id) {
  return unfolding("Requests it lost", "Why it is not found, and what would help", { id }, (one) => [
    facts([
      ["asked", `${plural(one.asked, "request")} in 30 days; ${count(one.lost)} lost`],
      ["among the first five", `${count(one.shown)} times, ${count(one.first)} times first`],
      ["reported", `${count(one.chosen)} chosen, ${count(one.succeeded)} succeeded`],
      ["because", one.cause && `${one.cause}: ${one.advice}`],
      ["lost to", one.lost_to.length > 0 && h("ul", {}, one.lost_to.map(rival))],
      ["try", one.rewrite && [h("q", {}, one.rewrite.sentence), ` ${one.rewrite.effect}.`]],
    ]),
    notes(one),
  ]);
}

function rival({ id, requests, why, examples }) {
  return h("li", {}, id ?? "one that you may not see", ` in ${plural(requests, "request")}`, why.length > 0 && `: ${why.join("; ")}`,
    examples.length > 0 && h("ul", {}, examples.map((text) => h("li", {}, h("q", {}, text)))));
}

/** The section of the page of outcomes: what was lost most, and what no answer had among its first five. */
export function lostSection(params) {
  const link = (id) => h("a", { class: "name", href: linkTo("outcomes", params, { open: id }), "data-id": id }, id);
  return unfolding("Not found", "What is not found, and why", { limit: 100 }, (all) => [
    h("p", {}, Object.entries(all.causes).map(([cause, number]) => `${count(number)} ${cause}`).join(", ") || "Everything that was asked for is found.", "."),
    h("ul", { class: "rows" }, all.capabilities.filter(({ cause }) => cause).map((one) =>
      h("li", {}, link(one.id), h("p", { class: "about" }, h("span", { class: "flag" }, one.cause), `asked ${count(one.asked)}, lost ${count(one.lost)}, first ${count(one.first)}`)))),
    h("p", { class: "foot" }, `${plural(all.never_found.count, "capability was", "capabilities were")} never among the first five.`),
    notes(all),
  ]);
}

function notes(found) {
  return found.notes.map((text) => h("p", { class: "hint" }, `${text}.`));
}
