// The review: changes that wait for an operator, beside what is shown meanwhile.

import { ask } from "./api.js";
import { twice } from "./bulk.js";
import { fill, h, plural, say, withCode } from "./dom.js";
import { askFor } from "./page.js";
import { linkTo } from "./query.js";
import { formatTime } from "./table.js";

const CHANGE = /^(dangerous|breaking|compatible|harmless): (.*)$/s;

let said = ""; // of the last decision, shown when the list is read again

/** List what is held, each with the fields that differ and the buttons that decide. */
export async function review(list, signal, reload) {
  const { waiting } = await askFor(list, "registry/review", signal);
  const title = h("h2", { tabindex: "-1" }, "Held changes");
  const status = h("p", { class: "status", role: "status" }, said);
  fill(list, title,
    h("p", { class: "hint" }, waiting.length ? "Callers are shown the approved version until a change is approved. Reject keeps it." : "Nothing waits."), status,
    h("ul", { class: "rows" }, waiting.map((one) => held(one, (approve) => decide(one, approve)))));
  say(said || `${plural(waiting.length, "change")} listed`);
  if (said) title.focus();
  said = "";

  async function decide({ id, digest }, approve) {
    try {
      await ask("registry/review", { method: "POST", body: { id, digest, approve } });
      said = `${id}: ${approve ? "approved" : "rejected"}.`;
    } catch (error) {
      said = error.message;
    }
    try {
      await reload();
    } catch (error) {
      fill(status, error.message);
    }
  }
}

function held({ id, since, approved, changes, fields }, decide) {
  return h("li", {},
    h("h3", {}, h("a", { class: "name", href: linkTo("registry", "", { view: "review", open: id }), "data-id": id }, id)),
    h("p", { class: "about" }, h("span", {}, "held since ", time(since)), h("span", {}, approved ? ["approved version of ", time(approved)] : "new: nothing is shown")),
    h("ul", { class: "plain", "aria-label": "Reasons" }, changes.map(reason)),
    h("table", { class: "differences" },
      h("thead", {}, h("tr", {}, ["approved", "held"].map((name) => h("th", { scope: "col" }, name)))),
      fields.map(({ field, shown, held }) => h("tbody", {}, h("tr", {}, h("th", { scope: "rowgroup", colspan: "2" }, field.replaceAll("_", " "))),
        h("tr", {}, [shown, held].map((text) => h("td", {}, text || h("span", { class: "hint" }, "none"))))))),
    h("p", { class: "row" }, twice("Approve", () => decide(true), { of: id, kind: "main" }), twice("Reject", () => decide(false), { of: id })));
}

function reason(text) {
  const [, name, words] = CHANGE.exec(text) ?? [text, "", text];
  return h("li", {}, name && [h("span", { class: name === "dangerous" ? "flag bad" : "flag" }, name), " "], withCode(words));
}

function time(text) {
  return h("time", { datetime: text }, formatTime(text));
}
