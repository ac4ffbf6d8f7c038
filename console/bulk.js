// What can be done with several capabilities at once, and with the trust of a namespace.

import { ask } from "./api.js";
import { fill, h, plural, say } from "./dom.js";

const DONE = { tag: "tagged", untag: "without these tags", trust: "with this trust", clear: "without flags until their text changes", remove: "removed" };

/** The bar that acts on the selected capabilities. `ids` returns them; `changed` runs after an action. */
export function bulkBar(ids, changed) {
  const status = h("p", { class: "status", role: "status" });
  const tags = h("input", { id: "bulk-tags", autocomplete: "off", spellcheck: "false", placeholder: "billing, internal" });
  const trust = h("input", { id: "bulk-trust", type: "number", min: 0, max: 100, placeholder: "none" });
  const clear = twice("Clear flags", () => run("clear", {}));
  const number = h("strong", {});
  const remove = twice("Remove", () => run("remove", {}));
  const bar = h("form", { class: "bulk", "aria-label": "With the selected", hidden: true, onsubmit: (event) => event.preventDefault() },
    number,
    h("span", { class: "row" }, h("label", { for: "bulk-tags" }, "Tags"), tags, button("Add", () => retag("tag"), "tags"), button("Remove", () => retag("untag"), "tags")),
    h("span", { class: "row" }, h("label", { for: "bulk-trust" }, "Trust"), trust, button("Set", () => setTrust(), "trust")),
    clear, remove, status);
  return { bar, show };

  function show() {
    const selected = ids();
    bar.hidden = selected.length === 0 && !status.textContent;
    fill(number, `${plural(selected.length, "capability", "capabilities")} selected`);
  }

  function retag(action) {
    const words = tags.value.split(",").map((one) => one.trim()).filter(Boolean);
    if (words.length) return run(action, { tags: words });
    fill(status, "No tags: write one or several, separated by commas.");
    return tags.focus();
  }

  function setTrust() {
    if (!trust.validity.valid) return void fill(status, "Trust is a whole number from 0 to 100; empty withdraws it.");
    return run("trust", { trust: trust.value === "" ? null : Number(trust.value) });
  }

  async function run(action, more) {
    const selected = ids();
    if (!selected.length) return void fill(status, "Nothing is selected.");
    try {
      const { done, failed } = await ask("registry/actions", { method: "POST", body: { action, ids: selected, ...more } });
      const text = `${plural(done, "capability", "capabilities")} ${DONE[action]}`;
      fill(status, text, ".", failed.length > 0 && h("ul", {}, failed.map(({ id, message }) => h("li", {}, `${id}: ${message}`))));
      say(text);
      await changed();
    } catch (error) {
      fill(status, error.message);
    }
    show();
  }
}

function button(label, onclick, of) {
  return h("button", { type: "button", id: `bulk-${label}-${of}`.toLowerCase(), onclick }, label, h("span", { class: "unseen" }, ` ${of}`));
}

/** A button that acts at the second press. `of` is read out after its name, where several have the same. */
export function twice(name, act, { of = "", kind = "bad" } = {}) {
  const shown = h("button", { type: "button", class: kind, id: `twice-${name} ${of}`.trim().toLowerCase().replaceAll(" ", "-"), onclick: press, onblur: reset });
  let sure;
  reset();
  return shown;

  function reset() {
    sure = false;
    label(name);
  }

  function label(text) {
    fill(shown, text, of && h("span", { class: "unseen" }, ` ${of}`));
  }

  function press() {
    if (!sure) {
      sure = true;
      return void label(`${name}: sure?`);
    }
    reset();
    return act();
  }
}

/** The trust and the verified provider of a namespace and all below it; the fields are disabled until both are read. */
export function namespaceTrust(namespace, changed) {
  const status = h("p", { class: "status", role: "status" });
  const trust = h("input", { id: "namespace-trust", type: "number", min: 0, max: 100, placeholder: "none" });
  const provider = h("input", { id: "namespace-provider", autocomplete: "off", maxlength: 200, placeholder: "none" });
  const fields = h("fieldset", { class: "row", disabled: true }, h("label", { for: "namespace-trust" }, "Trust"), trust,
    h("label", { for: "namespace-provider" }, "Verified provider"), provider, h("button", { class: "main" }, "Save"), status);
  return h("details", { class: "namespace-trust", ontoggle: load }, h("summary", {}, `Trust of ${namespace} and all below it`),
    h("form", { onsubmit: save }, fields),
    h("p", { class: "hint" }, "The default of capabilities without a trust of their own. Empty fields remove it."));

  async function load(event) {
    fields.disabled = true;
    if (!event.currentTarget.open) return;
    try {
      const row = await ask(`registry/trust?${new URLSearchParams({ namespace })}`);
      trust.value = row.trust ?? "";
      provider.value = row.provider;
      fields.disabled = false;
    } catch (error) {
      fill(status, error.message);
    }
  }

  async function save(event) {
    event.preventDefault();
    if (!trust.validity.valid) return void fill(status, "Trust is a whole number from 0 to 100.");
    try {
      const body = { namespace, trust: trust.value === "" ? null : Number(trust.value), provider: provider.value.trim() };
      const { capabilities } = await ask("registry/trust", { method: "POST", body });
      fill(status, `Saved for ${plural(capabilities, "capability", "capabilities")}.`);
      await changed();
    } catch (error) {
      fill(status, error.message);
    }
  }
}
