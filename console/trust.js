// What operators assign: the trust of a capability or of a namespace, its verified provider, and cleared flags.

import { ask } from "./api.js";
import { fill, h, plural, twice } from "./dom.js";

/**
 * The form of a target: a capability's id, or a namespace, which also has a provider. `isFlagged`: its text has flags that
 * can be cleared; `changed` runs after a change.
 */
export function trustForm(target, { isFlagged = false, changed = () => undefined } = {}) {
  const isNamespace = !target.includes("/");
  const status = h("p", { role: "status" });
  const trust = h("input", { id: "trust", type: "number", min: 0, max: 100, placeholder: "none" });
  const provider = h("input", { id: "provider", autocomplete: "off", maxlength: 200, placeholder: "none" });
  const fields = h("fieldset", { class: "row", disabled: true }, h("label", { for: "trust" }, "Trust"), trust,
    isNamespace && [h("label", { for: "provider" }, "Verified provider"), provider],
    h("button", { class: "main" }, "Save"), isFlagged && twice("Clear flags", () => send({ cleared: true })), status);
  load();
  return h("form", { onsubmit: save }, fields,
    h("p", { class: "hint" }, isNamespace ? "The default of capabilities without a trust of their own. Empty fields withdraw it." : "Empty: that of its namespace."));

  async function load() {
    try {
      const row = await ask(`registry/trust?${new URLSearchParams({ target })}`);
      trust.value = row.trust ?? "";
      provider.value = row.provider;
      fields.disabled = false;
    } catch (error) {
      fill(status, error.message);
    }
  }

  function save(event) {
    event.preventDefault();
    if (!trust.validity.valid) return void fill(status, "Trust is a whole number from 0 to 100.");
    return send({ trust: trust.value === "" ? null : Number(trust.value), ...(isNamespace && { provider: provider.value.trim() }) });
  }

  async function send(changes) {
    try {
      const { capabilities } = await ask("registry/trust", { method: "POST", body: { target, ...changes } });
      fill(status, `Saved for ${plural(capabilities, "capability", "capabilities")}.`);
      await changed();
    } catch (error) {
      fill(status, error.message);
    }
  }
}
