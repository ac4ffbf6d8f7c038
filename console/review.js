// The review: changes that wait for an operator, beside what is shown meanwhile.

import { ask, hasRegistry, readOnlyNotice } from "./api.js";
import { fill, h, plural, say, time, twice, withCode } from "./dom.js";
import { linkTo } from "./query.js";

let list, running;

export const review = { title: "Review", open, update: () => undefined, close: () => running.abort(), links: () => [...(list?.querySelectorAll("a.name") ?? [])] };

async function open(main) {
  running = new AbortController();
  list = null;
  if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, readOnlyNotice("Review"));
  list = h("div", {});
  fill(main, h("h1", { tabindex: "-1" }, "Held changes"), list);
  await show();
}

/** List what is held, each with the fields that differ and the buttons that decide; `said` of the last decision. */
async function show(said = "") {
  const { waiting } = await ask("registry/review", { signal: running.signal });
  fill(list,
    h("p", { class: "hint" }, waiting.length ? "Callers are shown the approved version until a change is approved. Reject keeps it." : "Nothing waits."),
    h("p", { role: "status" }, said),
    h("ul", { class: "rows" }, waiting.map(held)));
  say(said || `${plural(waiting.length, "change")} listed`);
}

async function decide({ id, digest }, approve) {
  try {
    await ask("registry/review", { method: "POST", body: { id, digest, approve } });
    await show(`${id}: ${approve ? "approved" : "rejected"}.`);
  } catch (error) {
    fill(list.querySelector("[role=status]"), error.message);
  }
  document.querySelector("h1").focus();
}

function held(change) {
  const { id, since, approved, changes, fields } = change;
  return h("li", {},
    h("h2", {}, h("a", { class: "name", href: linkTo("registry", "", { open: id }), "data-id": id }, id)),
    h("p", { class: "about" }, h("span", {}, "held since ", time(since)), h("span", {}, approved ? ["approved version of ", time(approved)] : "new: nothing is shown")),
    h("ul", { "aria-label": "Reasons" }, changes.map((text) => h("li", {}, withCode(text)))),
    h("table", { class: "differences" },
      h("thead", {}, h("tr", {}, ["approved", "held"].map((name) => h("th", { scope: "col" }, name)))),
      fields.map(({ field, shown, held: next }) => h("tbody", {}, h("tr", {}, h("th", { scope: "rowgroup", colspan: "2" }, field.replaceAll("_", " "))),
        h("tr", {}, [shown, next].map((text) => h("td", {}, text || h("span", { class: "hint" }, "none"))))))),
    h("p", { class: "row" }, twice("Approve", () => decide(change, true), { of: id, kind: "main" }), twice("Reject", () => decide(change, false), { of: id })));
}
