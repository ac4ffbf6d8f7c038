// The side panel: one capability, as it was registered, as it is found, and what it was before.

import { ask, overview, pathOf } from "./api.js";
import { h, fill, marked, plural, say } from "./dom.js";
import { linkTo } from "./query.js";

/** Show a capability beside what is there; null takes the panel away. `words` are marked, `away` closes it. */
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
    const told = await details(id, signal);
    fill(title, marked(told.profile?.name ?? told.registration?.name ?? id, words));
    fill(content, ...parts(id, told, words));
  } catch (error) {
    if (error.name === "AbortError") {
      delete side.dataset.shown;
      return;
    }
    fill(content, h("p", { class: "notice bad" }, error.message));
    say(error.message);
  }
}

/** Take the panel away; whoever was in it is back at what it was opened from. */
export function close(side) {
  const id = side.dataset.shown;
  const inside = side.contains(document.activeElement);
  delete side.dataset.shown;
  document.body.classList.remove("beside");
  fill(side);
  if (inside) opener(id)?.focus({ preventScroll: true });
}

/** Go to a page's address without what is open, and to what it was opened from; false if nothing is open. */
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

/** What there is to say: all of it where the registry is here, the public profile elsewhere. */
async function details(id, signal) {
  if (await overview({ signal })) return { ...(await ask(`registry/capabilities/${pathOf(id)}`, { signal })), here: true };
  const profile = await ask(`capabilities/${pathOf(id)}`, { signal });
  return { id, registration: null, profile: { ...profile, enrichment: profile }, versions: [], here: false };
}

function parts(id, told, words) {
  const { profile, registration } = told;
  return [
    h("p", { class: "about" }, h("code", { class: "id" }, id)),
    told.here && h("p", { class: "row" }, registration && h("a", { class: "button", href: linkTo("edit", "", { id }) }, "Edit")),
    profile?.error && h("p", { class: "notice bad" }, h("strong", {}, "Rejected: "), profile.error),
    told.given_up && h("p", { class: "notice bad" }, h("strong", {}, "Given up: "), told.given_up, " Run ", h("code", {}, "mats reconcile"), " to try again."),
    profile?.suspicious?.map((reason) => h("p", { class: "notice" }, h("strong", {}, "Suspicious: "), `its text ${reason}.`)),
    profile && found(profile, words),
    registration && written(registration),
    profile && !registration && !told.here && described(profile, words),
    profile && origin(profile),
    told.versions.length > 0 && history(told.versions),
  ];
}

/** The five fields. */
function found(profile, words) {
  const { summary, action, keywords, positive_examples: yes, negative_examples: no } = profile.enrichment ?? {};
  const by = profile.enriched ? "Enriched by an LLM." : "Not enriched by an LLM: the owner's own text.";
  return section("How it is found", h("p", { class: "hint" }, by),
    facts([
      ["summary", summary && marked(summary, words)],
      ["action", action && marked(action, words)],
      ["keywords", keywords?.length && h("ul", { class: "tags" }, keywords.map((word) => h("li", {}, marked(word, words))))],
      ["positive examples", list(yes, words)],
      ["negative examples", list(no)],
      ["trust", profile.trust === null || profile.trust === undefined ? "none given" : `${profile.trust} of 100`],
    ]));
}

function list(texts, words) {
  return texts?.length ? h("ul", {}, texts.map((text) => h("li", {}, marked(text, words)))) : null;
}

function written(registration) {
  const { input_schema: schema, descriptor, ...rest } = registration;
  return section("Registration", facts(Object.entries(rest).map(([name, value]) => [name, shown(value)])),
    schema && folded("input_schema", schema), descriptor && folded("descriptor", descriptor));
}

function described(profile, words) {
  return section("Registration", facts([
    ["description", profile.description && marked(profile.description, words)],
    ["kind", profile.kind], ["provider", profile.provider], ["version", profile.version], ["endpoint", profile.endpoint],
    ["tags", shown(profile.tags)], ["type_tags", shown(profile.type_tags)], ["lifecycle", profile.lifecycle],
  ]), profile.input_schema && folded("input_schema", profile.input_schema));
}

function shown(value) {
  if (Array.isArray(value)) return value.length ? h("ul", {}, value.map((one) => h("li", {}, shown(one)))) : null;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value === null || value === "" ? null : String(value);
}

function folded(name, value) {
  return h("details", {}, h("summary", {}, name), h("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
}

function origin(profile) {
  const rows = [
    ["status", profile.status],
    ["described", profile.enriched ? "by an LLM" : "by its owner"],
    ["encoder", profile.encoder],
    ["origin", profile.origin && h("code", {}, profile.origin)],
    ["content", profile.content && h("code", {}, profile.content)],
    ["revision", profile.rev && `${profile.rev}${profile.indexed_rev === undefined || profile.indexed_rev === profile.rev ? "" : `, of which ${profile.indexed_rev} is indexed`}`],
    ["brought about by", profile.cause && [h("time", { datetime: profile.cause.time }, when(profile.cause.time)), ` (event ${profile.cause.event_id})`]],
    ["left out", profile.notes?.length ? list(profile.notes) : null],
  ];
  return section("Origin", facts(rows));
}

function history(versions) {
  return section("Versions", h("p", { class: "hint" }, `${plural(versions.length, "revision")}, the newest first.`),
    h("ol", { class: "versions" }, versions.map(({ rev, status, enriched, cause, changed }) =>
      h("li", {}, h("strong", {}, `Revision ${rev}`), cause && [" ", h("time", { datetime: cause.time }, when(cause.time))],
        status !== "active" && [" ", h("span", { class: "flag" }, status)], enriched && [" ", h("span", { class: "flag quiet" }, "described")],
        h("p", { class: "hint" }, changed.length ? `changed: ${changed.join(", ")}` : "the first")))));
}

/** A time as people read it. */
export function when(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

function section(title, ...content) {
  return h("section", {}, h("h3", {}, title), content);
}

/** Names and values; what has no value is left out. */
export function facts(rows) {
  const there = rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== 0 && value !== false);
  return h("dl", { class: "facts" }, there.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value)]));
}
