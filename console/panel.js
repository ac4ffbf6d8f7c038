// The side panel: one capability with how it is called, how it is found, its trust and its registration.

import { ask, hasRegistry, pathOf } from "./api.js";
import { callSection } from "./call.js";
import { copyButton, facts, h, fill, markWords, percent, say, section, time } from "./dom.js";
import { linkTo } from "./query.js";
import { trustForm } from "./trust.js";

const REGISTERED = ["description", "kind", "provider", "version", "endpoint", "tags", "type_tags", "lifecycle", "input_schema"];

/** Show a capability in the panel; null closes it. `words` are marked, `away` is the listener of the close button. */
export async function show(side, id, { words = new Set(), away, signal } = {}) {
  if (!id) return close(side);
  if (side.dataset.shown === id && side.dataset.words === [...words].join()) return;
  const known = side.dataset.shown === id;
  Object.assign(side.dataset, { shown: id, words: [...words].join() });
  document.body.classList.add("beside");
  const title = h("h2", { id: "panel-title", tabindex: "-1" }, id.split("/").slice(1).join("/") || id);
  const content = h("div", {}, h("p", { class: "hint" }, "Loading…"));
  fill(side, h("aside", { class: "card", "aria-labelledby": "panel-title" },
    h("div", { class: "row apart" }, title, h("button", { type: "button", onclick: away, "aria-label": "Close details" }, "Close")), content));
  if (!known) title.focus({ preventScroll: matchMedia("(min-width: 60rem)").matches });
  try {
    const capability = await details(id, signal);
    fill(title, markWords(capability.profile?.name ?? capability.registration?.name ?? id, words));
    fill(content, ...parts(id, capability, words));
  } catch (error) {
    if (error.name === "AbortError") {
      delete side.dataset.shown;
      return;
    }
    fill(content, h("p", { class: "notice bad" }, error.message));
    say(error.message);
  }
}

/** Close the panel; focus within it returns to the link that opened it. */
export function close(side) {
  const id = side.dataset.shown;
  const inside = side.contains(document.activeElement);
  delete side.dataset.shown;
  document.body.classList.remove("beside");
  fill(side);
  if (inside) opener(id)?.focus({ preventScroll: true });
}

/** Close the panel by the address, and focus the link that opened it; false if it is not open. */
export function leave(page, params) {
  const id = params.get("open");
  if (!id) return false;
  location.hash = linkTo(page, params, { open: undefined });
  opener(id)?.focus();
  return true;
}

function opener(id) {
  return document.querySelector(`main a.name[data-id="${CSS.escape(id)}"]`);
}

/** All of a capability if this token may read the registry; otherwise the public profile. */
async function details(id, signal) {
  if (await hasRegistry({ signal })) return { ...(await ask(`registry/capabilities/${pathOf(id)}`, { signal })), here: true };
  const { snippets, ...profile } = await ask(`capabilities/${pathOf(id)}?snippets=true`, { signal });
  const registration = Object.fromEntries(REGISTERED.map((name) => [name, profile[name]]));
  return { id, registration, profile: { ...profile, enrichment: profile }, snippets, here: false };
}

function parts(id, capability, words) {
  const { profile, registration, given_up: failure, here: isLocal, same_text: copies = [] } = capability;
  return [
    h("p", { class: "about" }, h("code", {}, id), copyButton("id", id), isLocal && registration && h("a", { class: "button", href: linkTo("edit", "", { id }) }, "Edit")),
    profile?.error && h("p", { class: "notice bad" }, h("strong", {}, "Rejected: "), profile.error),
    failure && h("p", { class: "notice bad" }, h("strong", {}, "Given up: "), failure, " Run ", h("code", {}, "mats reconcile"), " to try again."),
    capability.vector_pending && h("p", { class: "hint" }, h("span", { class: "flag quiet" }, "vector pending"), " Found by words until it is encoded."),
    profile?.suspicious?.map((reason) => h("p", { class: "notice" }, h("strong", {}, "Suspicious: "), `its text ${reason}.`)),
    copies.length > 0 && h("p", { class: "notice" }, "Nearly the same text: ", copies.join(", "), "."),
    capability.snippets && callSection(capability),
    profile && foundBy(profile, words),
    isLocal && registration && section("Trust", trustForm(id, { isFlagged: profile?.suspicious?.length > 0 })),
    registration && section("Registration", facts(Object.entries(registration).map(([name, value]) => [name, valueOf(value)]))),
  ];
}

function foundBy(profile, words) {
  const { summary, action, keywords, positive_examples: yes, negative_examples: no } = profile.enrichment ?? {};
  const by = profile.enriched ? "Enriched by an LLM." : "Not enriched by an LLM: the owner's own text.";
  return section("How it is found", h("p", { class: "hint" }, by),
    facts([
      ["summary", summary && markWords(summary, words)],
      ["action", action && markWords(action, words)],
      ["keywords", keywords?.length && list(keywords, words)],
      ["example requests", yes?.length && list(yes, words)],
      ["don't use for", no?.length && list(no)],
      ["trust", profile.trust === null || profile.trust === undefined ? "none given" : `${profile.trust} of 100`],
      ["provider", profile.provider && `${profile.provider} (${profile.provider_verified ? "verified" : "claimed"})`],
      ["effects", profile.effects?.join(", ")],
      ["left out", profile.notes?.length > 0 && list(profile.notes)],
      ["revision", profile.cause && [`${profile.rev}, ${profile.status}, of `, time(profile.cause.time)]],
    ]));
}

function list(texts, words) {
  return h("ul", {}, texts.map((text) => h("li", {}, markWords(text, words))));
}

function valueOf(value) {
  if (Array.isArray(value)) return value.length ? h("ul", {}, value.map((one) => h("li", {}, valueOf(one)))) : null;
  if (typeof value === "object" && value !== null) return h("details", {}, h("summary", {}, "JSON"), h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
  return value === null ? null : String(value ?? "");
}
