// One result of a shortlist: a row, and the reasons that unfold from it.

import { h, markWords, percent, score } from "./dom.js";

const SIGNALS = {
  llm: ["Reranker", "not scored"],
  retrieval: ["Words and meaning", "not measured"],
  bm25: ["Words (BM25)", "not searched"],
  quality: ["Trust", "no trust given"],
  intent: ["Type asked for", "no type inferred"],
};
const STAND_IN = "retrieval"; // replaces the reranker, with its weight, where there is no score
const FIELDS = { positive_examples: "example requests", negative_examples: "don't use for" };

/** The signals to show for these results, in order: those configured, and those measured. */
export function signalsOf(results, weights) {
  const known = new Set([...Object.keys(weights), ...results.flatMap((result) => Object.keys(result.signals))]);
  return [...Object.keys(SIGNALS).filter((signal) => known.has(signal)), ...[...known].filter((signal) => !SIGNALS[signal])];
}

/**
 * The row of a result. `around` is the same for all of an answer: its `signals`, the configured `weights`, whether
 * capabilities with and without an LLM's profile are `mixed`; `link` makes the attributes of the name's link.
 */
export function row(result, place, { signals, weights, mixed, link }) {
  const words = new Set(result.why?.spelled ?? []);
  return h(
    "li",
    { class: "card result", value: place },
    h("span", { "aria-hidden": "true" }, place),
    h("div", { class: "about head" },
      h("h2", {}, h("a", { class: "name", ...link(result) }, markWords(result.name, words))),
      h("span", { class: "kind" }, result.kind), h("span", {}, markWords(result.namespace, words)), flags(result, mixed)),
    meter(result.score, "Score"),
    h("p", { class: "summary" }, result.summary ? markWords(result.summary, words) : "No description."),
    h("details", {},
      h("summary", {}, "Why", h("span", { class: "unseen" }, ` ${result.name}`)),
      h("p", {}, matchedWords(result.why)),
      h("ul", { class: "signals", "aria-label": `Signals of ${result.name}` }, signals.map((signal) => item(result, signal, weights))),
      (result.provider || result.version) && h("p", { class: "about" },
        result.provider && h("span", {}, "by ", markWords(result.provider, words)), result.version && h("span", {}, `version ${result.version}`))),
  );
}

/** Warnings: deprecated, not enriched, suspicious. */
function flags(result, mixed) {
  return [
    result.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
    mixed && !result.enriched && h("span", { class: "flag quiet", title: "Not enriched by an LLM: shown as registered." }, "as registered"),
    result.suspicious.map((reason) => h("span", { class: "flag bad" }, `suspicious: its text ${reason}`)),
  ];
}

function matchedWords(why) {
  if (!why?.matched.length) return "No matching words: found by meaning alone.";
  const fields = why.fields.map((field) => FIELDS[field] ?? field.replaceAll("_", " ")).join(", ");
  return ["Matched ", why.matched.map((word, i) => [i > 0 && ", ", h("mark", {}, word)]), ` in ${fields}.`];
}

/** A signal: its configured and its effective weight, its value or why it is absent, and what it adds to the score. */
function item(result, signal, weights) {
  const [label, absent] = SIGNALS[signal] ?? [signal, "not measured"];
  const configured = weights[signal] ?? (signal === STAND_IN ? weights.llm : undefined);
  const { [signal]: value } = result.signals;
  const { [signal]: effective } = result.weights;
  return h("li", {}, h("span", { class: "hint" }, `${label}, weight `, weight(effective, configured)),
    value === undefined ? h("span", { class: "hint" }, `absent: ${absent}`) : [meter(value, label), h("span", { class: "hint" }, `adds ${score((effective ?? 0) * value)}`)]);
}

/** `50 %`, or `50 → 59 %` if the weight of absent signals was distributed. */
function weight(effective, configured) {
  if (effective === undefined) return configured ? h("s", {}, percent(configured)) : "–";
  if (configured === undefined || Math.abs(effective - configured) < 0.005) return percent(effective);
  return `${Math.round(100 * configured)} → ${percent(effective)}`;
}

function meter(value, label) {
  return h("span", { class: "meter" }, h("meter", { value, "aria-label": label }), h("span", {}, score(value)));
}
