// The form of a registration, with the preview beside it.

import { ask, hasRegistry, overview, pathOf, readOnlyNotice } from "./api.js";
import { facts, h, fill, say, score, twice } from "./dom.js";
import { FIELDS, fillFields, itemOf } from "./fields.js";
import { linkTo } from "./query.js";

let id, etag, form, report, status, running;
let before = null; // the saved state of the form; null if there are no changes to lose

export const editor = { title: "Registration", open, update, close, hasInput: true };

async function open(main, params) {
  running = new AbortController();
  id = params.get("id");
  const { signal } = running;
  if (!(await hasRegistry({ signal }))) return void fill(main, readOnlyNotice("Registration"));
  const [{ writer }, stored] = await Promise.all([overview({ signal }), id && ask(`registry/capabilities/${pathOf(id)}`, { signal })]);
  if (id && !stored.registration) {
    return void fill(main, h("h1", {}, "Registration"), h("p", { class: "notice" }, `${id} is no longer registered.`));
  }
  etag = stored?.etag;
  status = h("p", { role: "status" });
  report = h("section", { class: "card", "aria-labelledby": "preview-title" },
    h("h2", { id: "preview-title" }, "Preview of this registration"),
    h("p", { class: "hint" }, "Its profile, its place for queries, and what comes before it and why.", writer && ` This calls ${writer}, which has a cost.`));
  form = h("form", { novalidate: true, onsubmit: save }, fieldsets(),
    h("div", { class: "row" }, h("button", { class: "main" }, id ? "Save" : "Register"), h("button", { type: "button", onclick: preview }, "Preview"), id && twice("Remove", remove), status));
  fill(main, h("h1", {}, id ? `Edit ${stored.registration.name}` : "Register a capability"), h("div", { class: "two" }, form, report));
  fillFields(form, stored?.registration ?? {});
  before = formState();
  addEventListener("beforeunload", leaving);
  if (!id) form.elements.name.focus({ preventScroll: true });
}

/** Returns false if the user keeps the page open because of unsaved changes. */
async function update(params) {
  return params.get("id") === id || (close() && open(document.getElementById("main"), params));
}

/** Returns false if the user keeps the page open because of unsaved changes. */
function close() {
  if (isChanged() && !confirm("Leave without saving?")) return false;
  before = null;
  running?.abort();
  removeEventListener("beforeunload", leaving);
  return true;
}

function leaving(event) {
  if (isChanged()) event.preventDefault();
}

function formState() {
  return JSON.stringify([...new FormData(form)]);
}

function isChanged() {
  return before !== null && formState() !== before;
}

function fieldsets() {
  const main = FIELDS.filter((field) => !field.more);
  const more = FIELDS.filter((field) => field.more);
  return [main.map(input), h("details", {}, h("summary", {}, "More"), more.map(input))];
}

function input({ name, label, hint, make, required }) {
  return h(
    "div",
    { class: "field" },
    h("label", { for: `field-${name}` }, label, required && h("span", { class: "hint" }, " (required)")),
    make({ id: `field-${name}`, name, "aria-describedby": `hint-${name} fault-${name}`, "aria-required": required ? "true" : undefined, readonly: Boolean(id) && (name === "namespace" || name === "name") }),
    h("p", { class: "hint", id: `hint-${name}` }, hint),
    h("p", { class: "bad", id: `fault-${name}` }),
  );
}

/** Show faults at their fields, and others, with the text of the problem, beside the buttons. */
function showFaults(faults, text = "") {
  const byField = Map.groupBy(faults, ({ field }) => field.split(".")[0]);
  for (const { name } of FIELDS) {
    const messages = (byField.get(name) ?? []).map(({ field, message }) => (field === name ? message : `${field.slice(name.length + 1)}: ${message}`));
    fill(form.querySelector(`#fault-${name}`), messages.join("; "));
    if (messages.length > 0) form.elements[name].setAttribute("aria-invalid", "true");
    else form.elements[name].removeAttribute("aria-invalid");
  }
  fill(status, text);
  const first = form.querySelector("[aria-invalid]");
  if (first?.closest("details")) first.closest("details").open = true;
  first?.focus();
}

/** Send the item of the form; a rejection is shown at its fields, and null is returned. */
async function send(request) {
  const { item, faults } = itemOf(form);
  showFaults(faults, faults.length ? "Invalid: see the marked fields." : "");
  if (faults.length) return null;
  form.setAttribute("aria-busy", "true");
  try {
    return await request(item);
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (error.status === 412) fill(status, id ? "It was changed by someone else. " : "It is registered already. ", h("a", { href: linkTo("registry", "", { open: id ?? `${item.namespace}/${item.name}` }) }, "See its registration"));
    else showFaults(error.errors, error.errors.length ? "Invalid: see the marked fields." : error.message);
    return null;
  } finally {
    form.removeAttribute("aria-busy");
  }
}

async function preview() {
  const found = await send((item) => ask("registry/preview", { method: "POST", body: item, signal: running.signal }));
  if (!found) return;
  fill(report, previewReport(found));
  report.scrollIntoView();
}

async function save(event) {
  event.preventDefault();
  const headers = id ? { "If-Match": `"${etag}"` } : { "If-None-Match": "*" };
  const saved = await send((item) => ask(`registry/capabilities/${pathOf(`${item.namespace ?? ""}/${item.name ?? ""}`)}`, { method: "PUT", body: item, headers }));
  if (!saved) return;
  before = null;
  say(`${saved.id}: ${saved.placed}, ${saved.findable ? "findable now" : "saved, and findable once it is indexed"}`);
  location.hash = linkTo("registry", "", { open: saved.id });
}

async function remove() {
  try {
    await ask(`registry/capabilities/${pathOf(id)}`, { method: "DELETE", headers: { "If-Match": `"${etag}"` } });
    before = null;
    say(`${id}: removed`);
    location.hash = "#/registry";
  } catch (error) {
    fill(status, error.status === 412 ? "It was changed by someone else: reload it first." : error.message);
  }
}

/** The report beside the form. */
function previewReport(report) {
  const { profile, queries, without } = report;
  return [
    h("h2", { id: "preview-title" }, "Preview of this registration"),
    profile.suspicious.map((reason) => h("p", { class: "notice" }, h("strong", {}, "Suspicious: "), `its text ${reason}.`)),
    h("h3", {}, "Queries that should find it"),
    queries.length ? h("ul", {}, queries.map(queryReport)) : h("p", { class: "hint" }, "No query to try: it has no examples, and its text is too short to derive one."),
    h("h3", {}, "Its profile"),
    facts([
      ["described by", profile.described_by],
      ["summary", profile.summary],
      ["action", profile.action],
      ["keywords", profile.keywords.join(", ")],
      ["example requests", profile.positive_examples.length > 0 && h("ul", {}, profile.positive_examples.map((text) => h("li", {}, text)))],
      ["don't use for", profile.negative_examples.length > 0 && h("ul", {}, profile.negative_examples.map((text) => h("li", {}, text)))],
      ["trust", profile.trust === null ? "none given" : `${profile.trust} of 100`],
    ]),
    h("details", {}, h("summary", {}, "Text for the encoder"), h("p", {}, profile.encoded_text)),
    without.map((reason) => h("p", { class: "hint" }, `Without ${reason}`)),
  ];
}

function queryReport({ query, origin, place, looked_at: count, before }) {
  const competitors = before.map((one) => h("li", { value: one.place }, h("a", { href: linkTo("registry", "", { open: one.id }), target: "_blank", rel: "noopener" }, one.id), ` (${score(one.score)}): ${one.why.join("; ")}`));
  return h("li", {}, h("span", { class: `flag ${place === 1 ? "good" : place ? "" : "bad"}` }, place ? `place ${place} of ${count}` : `not among the first ${count}`), " ", h("q", {}, query), h("span", { class: "hint" }, ` ${origin}`),
    competitors.length > 0 && h("details", {}, h("summary", {}, "Ranked above it"), h("ol", {}, competitors)));
}
