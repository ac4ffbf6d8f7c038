// Write a registration: what is wrong with it shows while it is written, and beside it what would become of it.

import { ask, overview, pathOf } from "./api.js";
import { h, fill, say, settled } from "./dom.js";
import { FIELDS, itemOf, spread } from "./fields.js";
import { previewReport } from "./preview.js";
import { linkTo } from "./query.js";

let id, etag, writer, form, report, status, save, sequence, running;
let before = null; // what the form said when nothing of it was lost yet; null where there is nothing to lose

export const editor = { title: "Registration", open, update, close, keys: {} };

async function open(main, params) {
  running = new AbortController();
  sequence = 0;
  id = params.get("id");
  const there = await overview({ signal: running.signal });
  writer = there?.writer;
  if (!there) {
    return void fill(main, h("h1", {}, "Registration"), h("p", { class: "notice" }, "Registrations are not written through this service: see the Registry page."));
  }
  const kept = id ? await ask(`registry/capabilities/${pathOf(id)}`, { signal: running.signal }) : null;
  if (id && !kept.registration) {
    return void fill(main, h("h1", {}, "Registration"), h("p", { class: "notice" }, `${id} is no longer registered.`));
  }
  etag = kept?.etag;
  status = h("p", { class: "status", role: "status" });
  report = h("section", { class: "preview", "aria-labelledby": "preview-title" });
  save = h("button", { class: "main" }, id ? "Save" : "Register");
  form = h("form", { class: "editor", novalidate: true, onsubmit: put, oninput: typed }, fieldsets(), h("div", { class: "row buttons" }, save, id && remover(), status));
  fill(
    main,
    h("p", {}, h("a", { href: "#/registry" }, "← The registry")),
    h("h1", {}, id ? `Edit ${kept.registration.name}` : "Register a capability"),
    h("div", { class: "two editing" }, form, report),
  );
  spread(form, kept?.registration ?? Object.fromEntries([...params].filter(([name]) => name !== "id")));
  if (!id) form.kept.clear(); // an address has texts only
  before = written();
  blank();
  addEventListener("beforeunload", leaving);
  if (id) await check();
  else form.elements.name.focus({ preventScroll: true });
}

/** False where it stays as it is, for somebody would lose what they wrote. */
async function update(params) {
  if (params.get("id") === id) return true;
  if (close() === false) return false;
  return open(document.getElementById("main"), params);
}

/** False where somebody would lose what they wrote. */
function close() {
  if (changed() && !confirm("Leave without saving?")) return false;
  before = null;
  running?.abort();
  preview.stop();
  check.soon.stop();
  removeEventListener("beforeunload", leaving);
  return true;
}

function leaving(event) {
  if (changed()) event.preventDefault();
}

function written() {
  return JSON.stringify([...new FormData(form)]);
}

function changed() {
  return before !== null && written() !== before;
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

function typed() {
  fill(status);
  check.soon();
}

/** What is wrong, by field; what the form itself sees comes before what the service sees. */
function showFaults(faults) {
  const told = new Map();
  for (const { field, message } of faults) {
    const name = field.split(".")[0];
    const where = FIELDS.some((one) => one.name === name) ? name : "";
    const rest = field.slice(name.length + 1);
    told.set(where, [...(told.get(where) ?? []), where && rest ? `${rest}: ${message}` : where ? message : `${field} ${message}`.trim()]);
  }
  for (const { name } of FIELDS) {
    const messages = told.get(name) ?? [];
    const started = form.elements[name].value !== "" || form.dataset.tried;
    const shown = started ? messages : messages.filter((message) => message !== "is required");
    fill(form.querySelector(`#fault-${name}`), shown.join("; "));
    if (shown.length > 0) form.elements[name].setAttribute("aria-invalid", "true");
    else form.elements[name].removeAttribute("aria-invalid");
  }
  for (const hidden of form.querySelectorAll("details [aria-invalid]")) hidden.closest("details").open = true;
  return told.get("") ?? [];
}

async function check() {
  const mine = ++sequence;
  const { item, faults } = itemOf(form);
  let answer;
  try {
    answer = await ask("registry/check", { method: "POST", body: item, signal: running.signal });
  } catch (error) {
    if (error.name !== "AbortError") fill(status, error.message);
    return;
  }
  if (mine !== sequence || !form.isConnected) return;
  const turned = id && answer.placed === "other kind" ? [{ field: "kind", message: "cannot change" }] : [];
  const wrong = [...faults, ...turned, ...answer.errors.filter(({ field }) => !faults.some((fault) => fault.field === field.split(".")[0]))];
  const whole = showFaults(wrong);
  if (wrong.length) {
    preview.stop();
    blank(whole);
  } else {
    if (!id && answer.placed !== "new" && answer.placed !== null) fill(status, answer.placed === "other kind" ? `${answer.id} is registered as another kind.` : `${answer.id} is registered already: `, answer.placed !== "other kind" && h("a", { href: linkTo("edit", "", { id: answer.id }) }, "edit it"));
    if (writer) offer(item, mine);
    else preview(item, mine);
  }
}
check.soon = settled(() => check(), 200);

const preview = settled(async (item, mine) => {
  report.setAttribute("aria-busy", "true");
  try {
    const told = await ask("registry/preview", { method: "POST", body: item, signal: running.signal });
    if (mine === sequence) fill(report, previewReport(told));
  } catch (error) {
    if (error.name !== "AbortError" && mine === sequence) fill(report, heading(), h("p", { class: "notice bad" }, error.message));
  } finally {
    report.removeAttribute("aria-busy");
  }
}, 500);

/** A preview that asks a model costs something: it is for the one who writes to say when. */
function offer(item, mine) {
  preview.stop();
  const button = h("button", { type: "button", onclick: () => preview(item, mine) }, "Preview");
  fill(report, heading(), h("p", {}, button), h("p", { class: "hint" }, `This calls ${writer}, which has a price.`));
}

function heading() {
  return h("h2", { id: "preview-title" }, "Preview of this registration");
}

function blank(faults = []) {
  fill(report, heading(), faults.map((fault) => h("p", { class: "notice bad" }, fault)),
    h("p", { class: "hint" }, "For a valid registration, this shows its profile, its rank for queries, what outranks it and why, near-duplicates, and advice."));
}

async function put(event) {
  event.preventDefault();
  form.dataset.tried = "yes";
  const { item, faults } = itemOf(form);
  const target = `${item.namespace ?? ""}/${item.name ?? ""}`;
  save.disabled = true;
  try {
    if (faults.length) return void refused(faults);
    const told = await ask("registry/check", { method: "POST", body: item });
    if (!told.valid) return void refused(told.errors);
    const done = await ask(`registry/capabilities/${pathOf(target)}`, { method: "PUT", body: item, headers: id ? { "If-Match": `"${etag}"` } : { "If-None-Match": "*" } });
    const said = done.findable ? `${done.placed}, findable now` : `${done.placed}: it is safe, and findable once the service has read it`;
    say(`${done.id}: ${said}`);
    before = null;
    location.hash = linkTo("registry", "", { open: done.id });
  } catch (error) {
    if (error.status === 412) fill(status, h("strong", {}, id ? "It was changed by someone else. " : "It is registered already. "), h("a", { href: linkTo("registry", "", { open: target }) }, "Look at it"));
    else if (error.errors?.length) refused(error.errors);
    else fill(status, error.message);
  } finally {
    save.disabled = false;
  }
}

function refused(faults) {
  const whole = showFaults(faults);
  fill(status, whole.join("; ") || "Invalid: see the marked fields.");
  form.querySelector("[aria-invalid]")?.focus();
}

/** The first press asks, the second one does. */
function remover() {
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
