// The form of a registration, with its faults while typing and a preview beside it.

import { ask, hasRegistry, overview, pathOf } from "./api.js";
import { h, fill, say, debounce } from "./dom.js";
import { FIELDS, fillFields, itemOf } from "./fields.js";
import { previewReport } from "./preview.js";
import { linkTo } from "./query.js";

let id, etag, writer, form, report, status, save, sequence, running;
let before = null; // the saved state of the form; null if there are no changes to lose

export const editor = { title: "Registration", open, update, close, keys: {}, hasInput: true };

async function open(main, params) {
  running = new AbortController();
  sequence = 0;
  id = params.get("id");
  const { signal } = running;
  if (!(await hasRegistry({ signal }))) {
    return void fill(main, h("h1", {}, "Registration"), h("p", { class: "notice" }, "This service is read-only: see the Registry page."));
  }
  const [there, stored] = await Promise.all([overview({ signal }), id && ask(`registry/capabilities/${pathOf(id)}`, { signal })]);
  writer = there?.writer;
  if (id && !stored.registration) {
    return void fill(main, h("h1", {}, "Registration"), h("p", { class: "notice" }, `${id} is no longer registered.`));
  }
  etag = stored?.etag;
  status = h("p", { class: "status", role: "status" });
  report = h("section", { class: "preview", "aria-labelledby": "preview-title" });
  save = h("button", { class: "main" }, id ? "Save" : "Register");
  form = h("form", { class: "editor", novalidate: true, onsubmit: put, oninput: onInput }, fieldsets(), h("div", { class: "row buttons" }, save, id && removeButton(), status));
  fill(
    main,
    h("p", {}, h("a", { href: "#/registry" }, "← The registry")),
    h("h1", {}, id ? `Edit ${stored.registration.name}` : "Register a capability"),
    h("div", { class: "two editing" }, form, report),
  );
  fillFields(form, stored?.registration ?? valuesOf(params));
  if (!id) form.unchanged.clear(); // an address has texts only
  before = formState();
  blank();
  addEventListener("beforeunload", leaving);
  if (id) await check();
  else form.elements.name.focus({ preventScroll: true });
}

/** The fields in an address; a repeated parameter is a list. */
function valuesOf(params) {
  const names = [...new Set(params.keys())].filter((name) => name !== "id");
  return Object.fromEntries(names.map((name) => [name, params.getAll(name).length > 1 ? params.getAll(name) : params.get(name)]));
}

/** Returns false if the user keeps the page open because of unsaved changes. */
async function update(params) {
  if (params.get("id") === id) return true;
  if (close() === false) return false;
  return open(document.getElementById("main"), params);
}

/** Returns false if the user keeps the page open because of unsaved changes. */
function close() {
  if (isChanged() && !confirm("Leave without saving?")) return false;
  before = null;
  running?.abort();
  preview.stop();
  check.soon.stop();
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
  return [main.map(input), h("details", { class: "more" }, h("summary", {}, "More"), more.map(input))];
}

function input({ name, label, hint, make, required }) {
  return h(
    "div",
    { class: "field", "data-field": name },
    h("label", { for: `field-${name}` }, label, required && h("span", { class: "hint" }, " (required)")),
    make({ id: `field-${name}`, name, "aria-describedby": `hint-${name} fault-${name}`, "aria-required": required ? "true" : undefined, readonly: Boolean(id) && (name === "namespace" || name === "name") }),
    h("p", { class: "hint", id: `hint-${name}` }, hint),
    h("p", { class: "fault", id: `fault-${name}` }),
  );
}

function onInput() {
  fill(status);
  check.soon();
}

/** Show faults at their fields; returns those of no field. */
function showFaults(faults) {
  const byField = new Map();
  for (const { field, message } of faults) {
    const name = field.split(".")[0];
    const where = FIELDS.some((one) => one.name === name) ? name : "";
    const rest = field.slice(name.length + 1);
    byField.set(where, [...(byField.get(where) ?? []), where && rest ? `${rest}: ${message}` : where ? message : `${field} ${message}`.trim()]);
  }
  for (const { name } of FIELDS) {
    const messages = byField.get(name) ?? [];
    const started = form.elements[name].value !== "" || form.dataset.tried;
    const shown = started ? messages : messages.filter((message) => message !== "is required");
    fill(form.querySelector(`#fault-${name}`), shown.join("; "));
    if (shown.length > 0) form.elements[name].setAttribute("aria-invalid", "true");
    else form.elements[name].removeAttribute("aria-invalid");
  }
  for (const hidden of form.querySelectorAll("details [aria-invalid]")) hidden.closest("details").open = true;
  return byField.get("") ?? [];
}

async function check() {
  const number = ++sequence;
  const { item, faults } = itemOf(form);
  let answer;
  try {
    answer = await ask("registry/check", { method: "POST", body: item, signal: running.signal });
  } catch (error) {
    if (error.name !== "AbortError") fill(status, error.message);
    return;
  }
  if (number !== sequence || !form.isConnected) return;
  const conflict = id && answer.placed === "other kind" ? [{ field: "kind", message: "cannot change" }] : [];
  const wrong = [...faults, ...conflict, ...answer.errors.filter(({ field }) => !faults.some((fault) => fault.field === field.split(".")[0]))];
  const whole = showFaults(wrong);
  if (wrong.length) {
    preview.stop();
    blank(whole);
  } else {
    if (!id && answer.placed !== "new" && answer.placed !== null) fill(status, answer.placed === "other kind" ? `${answer.id} is registered as another kind.` : `${answer.id} is registered already: `, answer.placed !== "other kind" && h("a", { href: linkTo("edit", "", { id: answer.id }) }, "edit it"));
    if (writer) offerPreview(item, number);
    else preview(item, number);
  }
}
check.soon = debounce(() => check(), 200);

const preview = debounce(async (item, number) => {
  report.setAttribute("aria-busy", "true");
  try {
    const preview = await ask("registry/preview", { method: "POST", body: item, signal: running.signal });
    if (number === sequence) fill(report, previewReport(preview));
  } catch (error) {
    if (error.name !== "AbortError" && number === sequence) fill(report, heading(), h("p", { class: "notice bad" }, error.message));
  } finally {
    report.removeAttribute("aria-busy");
  }
}, 500);

/** A button for a preview that calls the writer, which has a cost. */
function offerPreview(item, number) {
  preview.stop();
  const button = h("button", { type: "button", onclick: () => preview(item, number) }, "Preview");
  fill(report, heading(), h("p", {}, button), h("p", { class: "hint" }, `This calls ${writer}, which has a cost.`));
}

function heading() {
  return h("h2", { id: "preview-title" }, "Preview of this registration");
}

function blank(faults = []) {
  fill(report, heading(), faults.map((fault) => h("p", { class: "notice bad" }, fault)),
    h("p", { class: "hint" }, "For a valid registration, this shows its profile, its rank for queries, what outranks it and why, near-duplicates, and suggestions."));
}

async function put(event) {
  event.preventDefault();
  form.dataset.tried = "yes";
  const { item, faults } = itemOf(form);
  const target = `${item.namespace ?? ""}/${item.name ?? ""}`;
  save.disabled = true;
  try {
    if (faults.length) return void showRejection(faults);
    const checked = await ask("registry/check", { method: "POST", body: item });
    if (!checked.valid) return void showRejection(checked.errors);
    const saved = await ask(`registry/capabilities/${pathOf(target)}`, { method: "PUT", body: item, headers: id ? { "If-Match": `"${etag}"` } : { "If-None-Match": "*" } });
    const status = saved.findable ? "findable now" : "saved, and findable once it is indexed";
    say(`${saved.id}: ${saved.placed}, ${status}`);
    before = null;
    location.hash = linkTo("registry", "", { open: saved.id });
  } catch (error) {
    if (error.status === 412) fill(status, h("strong", {}, id ? "It was changed by someone else. " : "It is registered already. "), h("a", { href: linkTo("registry", "", { open: target }) }, "See its registration"));
    else if (error.errors?.length) showRejection(error.errors);
    else fill(status, error.message);
  } finally {
    save.disabled = false;
  }
}

function showRejection(faults) {
  const whole = showFaults(faults);
  fill(status, whole.join("; ") || "Invalid: see the marked fields.");
  form.querySelector("[aria-invalid]")?.focus();
}

/** A button that removes at the second press. */
function removeButton() {
  const button = h("button", { type: "button", class: "bad" }, "Remove");
  let sure = false;
  button.addEventListener("blur", () => {
    sure = false;
    fill(button, "Remove");
  });
  button.addEventListener("click", async () => {
    if (!sure) {
      sure = true;
      fill(button, "Remove it: sure?");
      return;
    }
    try {
      await ask(`registry/capabilities/${pathOf(id)}`, { method: "DELETE", headers: { "If-Match": `"${etag}"` } });
      before = null;
      say(`${id}: removed`);
      location.hash = "#/registry";
    } catch (error) {
      fill(status, error.status === 412 ? "It was changed by someone else: reload it first." : error.message);
    }
  });
  return button;
}
