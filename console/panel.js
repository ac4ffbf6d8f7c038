// The side panel: one capability with its registration, profile and earlier versions.

import { ask, hasRegistry, pathOf } from "./api.js";
import { copyButton } from "./copy.js";
import { facts, h, fill, markWords, plural, say, section } from "./dom.js";
import { linkTo } from "./query.js";
import { formatTime, interval } from "./table.js";

const ORIGINAL = 60; // above the trust of what nobody has rated

/** Show a capability in the panel; null closes it. `words` are marked, `away` is the listener of the close button. */
export async function show(side, id, { words = new Set(), away, signal } = {}) {
  if (!id) return close(side);
  if (side.dataset.shown === id && side.dataset.words === [...words].join()) return;
  const known = side.dataset.shown === id;
  Object.assign(side.dataset, { shown: id, words: [...words].join() });
  document.body.classList.add("beside");
  const title = h("h2", { id: "panel-title", tabindex: "-1" }, id.split("/").slice(1).join("/") || id);
  const content = h("div", { class: "content" }, h("p", { class: "hint" }, "Loading…"));
  fill(side, h("aside", { class: "panel", "aria-labelledby": "panel-title" },
    h("div", { class: "head" }, title, h("button", { type: "button", class: "away", onclick: away, "aria-label": "Close details" }, "Close ", h("kbd", {}, "Esc"))), content));
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

/** All of a capability if the registry is on this machine; otherwise the public profile. */
async function details(id, signal) {
  if (await hasRegistry({ signal })) return { ...(await ask(`registry/capabilities/${pathOf(id)}`, { signal })), here: true };
  const { snippets, ...profile } = await ask(`capabilities/${pathOf(id)}?snippets=true`, { signal });
  return { id, registration: null, profile: { ...profile, enrichment: profile }, snippets, versions: [], here: false };
}

function parts(id, capability, words) {
  const { profile, registration, given_up: failure, here: isLocal, versions } = capability;
  return [
    h("p", { class: "about" }, h("code", { class: "id" }, id), copyButton("id", id)),
    isLocal && h("p", { class: "row" }, registration && h("a", { class: "button", href: linkTo("edit", "", { id }) }, "Edit")),
    profile?.error && h("p", { class: "notice bad" }, h("strong", {}, "Rejected: "), profile.error),
    failure && h("p", { class: "notice bad" }, h("strong", {}, "Given up: "), failure, " Run ", h("code", {}, "mats reconcile"), " to try again."),
    capability.vector_pending && h("p", { class: "hint" }, h("span", { class: "flag quiet" }, "vector pending"), " Found by words until it is encoded."),
    profile?.suspicious?.map((reason) => h("p", { class: "notice" }, h("strong", {}, "Suspicious: "), `its text ${reason}.`)),
    capability.same_text?.length > 0 && sameText(id, capability),
    capability.snippets && callSection(capability),
    profile && fiveFields(profile, words, capability),
    registration && registrationSection(registration),
    profile && !registration && !isLocal && publicSection(profile, words),
    versions.length > 0 && history(versions),
    profile && origin(profile),
  ];
}

/** Others with nearly the same text: which is the original is decided by an operator, with trust above that of the rest. */
function sameText(id, { same_text: others, profile }) {
  const status = h("span", { role: "status" });
  const decide = async () => {
    try {
      const { failed } = await ask("registry/actions", { method: "POST", body: { action: "trust", ids: [id], trust: ORIGINAL } });
      fill(status, failed[0]?.message ?? "Answers mark the others now.");
    } catch (error) {
      fill(status, error.message);
    }
  };
  return h("p", { class: "notice" }, "Nearly the same text: ", others.join(", "), ". ",
    profile?.trust == null && h("button", { type: "button", onclick: decide }, "This is the original"), " ", status);
}

function fiveFields(profile, words, { reliability = profile.reliability }) {
  const { summary, action, keywords, positive_examples: yes, negative_examples: no } = profile.enrichment ?? {};
  const by = profile.enriched ? "Enriched by an LLM." : "Not enriched by an LLM: the owner's own text.";
  return section("How it is found", h("p", { class: "hint" }, by),
    facts([
      ["summary", summary && markWords(summary, words)],
      ["action", action && markWords(action, words)],
      ["keywords", keywords?.length && h("ul", { class: "tags" }, keywords.map((word) => h("li", {}, markWords(word, words))))],
      ["example requests", list(yes, words)],
      ["don't use for", list(no)],
      ["trust", profile.trust === null || profile.trust === undefined ? "none given" : `${profile.trust} of 100`],
      ["effects", profile.effects?.join(", ")],
      ["reliability", reliability && reliabilityOf(reliability)],
    ]));
}

/** The posterior of the trust after what callers reported, with its 95 % interval. */
function reliabilityOf(reliability) {
  const { successes, failures } = reliability;
  return interval(reliability, `: ${successes.toFixed(1)} successes and ${failures.toFixed(1)} failures reported, later ones count more`);
}

function list(texts, words) {
  return texts?.length ? h("ul", {}, texts.map((text) => h("li", {}, markWords(text, words)))) : null;
}

function registrationSection(registration) {
  const { input_schema: schema, descriptor, ...rest } = registration;
  return section("Registration", facts(Object.entries(rest).map(([name, value]) => [name, valueOf(value)])),
    schema && jsonDetails("input_schema", schema), descriptor && jsonDetails("descriptor", descriptor));
}

function publicSection(profile, words) {
  return section("Registration", facts([
    ["description", profile.description && markWords(profile.description, words)],
    ["kind", profile.kind], ["provider", providerOf(profile)], ["version", profile.version], ["endpoint", profile.endpoint],
    ["tags", valueOf(profile.tags)], ["type_tags", valueOf(profile.type_tags)], ["lifecycle", profile.lifecycle],
  ]), profile.input_schema && jsonDetails("input_schema", profile.input_schema));
}

function providerOf({ provider, provider_verified: verified }) {
  return provider && (verified ? provider : `${provider} (claimed)`);
}

function valueOf(value) {
  if (Array.isArray(value)) return value.length ? h("ul", {}, value.map((one) => h("li", {}, valueOf(one)))) : null;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value === null || value === "" ? null : String(value);
}

function jsonDetails(name, value) {
  return h("details", {}, h("summary", {}, name), h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
}

function origin(profile) {
  const rows = [
    ["status", profile.status],
    ["provider", providerOf(profile)],
    ["described", profile.enriched ? "by an LLM" : "by its owner"],
    ["encoder", profile.encoder],
    ["origin", profile.origin && h("code", {}, profile.origin)],
    ["content", profile.content && h("code", {}, profile.content)],
    ["revision", profile.rev && `${profile.rev}${profile.indexed_rev === undefined || profile.indexed_rev === profile.rev ? "" : `, of which ${profile.indexed_rev} is indexed`}`],
    ["cause", profile.cause && [h("time", { datetime: profile.cause.time }, formatTime(profile.cause.time)), ` (event ${profile.cause.event_id})`]],
    ["left out", profile.notes?.length ? list(profile.notes) : null],
  ];
  return section("Origin", h("details", {}, h("summary", {}, "Status, models, hashes, cause"), facts(rows)));
}

function history(versions) {
  return section("Versions", h("p", { class: "hint" }, `${plural(versions.length, "revision")}, newest first.`),
    h("ol", { class: "versions" }, versions.map(({ rev, status, enriched, cause, changed }) =>
      h("li", {}, h("strong", {}, `Revision ${rev}`), cause && [" ", h("time", { datetime: cause.time }, formatTime(cause.time))],
        status !== "active" && [" ", h("span", { class: "flag" }, status)], enriched && [" ", h("span", { class: "flag quiet" }, "described")],
        h("p", { class: "hint" }, changed.length ? `changed: ${changed.join(", ")}` : "the first")))));
}
