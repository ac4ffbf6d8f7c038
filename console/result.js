// One result of a shortlist: a row, and what unfolds from it.

import { h, markWords } from "./dom.js";
import { list, stack } from "./signals.js";

/**
 * The row of a result. `around` is the same for all of an answer: its `signals`, the configured `weights`, whether
 * capabilities with and without an LLM's profile are `mixed`; `link` makes the attributes of the name's link, `pick`
 * those of the checkbox.
 */
export function row(result, place, { signals, weights, mixed, link, pick }) {
  const words = new Set(result.why?.spelled ?? []);
  const telling = tellingSentence(result.summary, words);
  return h(
    "li",
    { class: "card result", value: place },
    h("span", { class: "place", "aria-hidden": "true" }, place),
    h("div", { class: "head" },
      h("h2", {}, h("a", { class: "name", ...link(result) }, markWords(result.name, words))),
      h("span", { class: `kind ${result.kind}` }, result.kind), h("span", { class: "where" }, markWords(result.namespace, words)), flags(result, mixed)),
    stack(result, signals),
    telling ? h("p", { class: "summary" }, markWords(telling, words)) : h("p", { class: "summary none" }, "No description."),
    h("label", { class: "pick", title: "Compare" }, h("input", { type: "checkbox", ...pick(result) }), h("span", { class: "unseen" }, `Compare ${result.name}`)),
    h("details", { class: "reasons" },
      h("summary", {}, "Why", h("span", { class: "unseen" }, ` ${result.name}`)),
      telling !== result.summary && h("p", {}, markWords(result.summary, words)),
      h("p", { class: "why" }, matchedWords(result.why)),
      list(result, signals, weights),
      (result.provider || result.version) && h("p", { class: "about" },
        result.provider && h("span", {}, "by ", markWords(result.provider, words)), result.version && h("span", {}, `version ${result.version}`))),
  );
}

const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });

/** The sentence of a text in which most of these words stand; the first of equals. */
function tellingSentence(text, words) {
  const sentences = [...SENTENCES.segment(text)].map(({ segment }) => segment.trim()).filter(Boolean);
  const counts = sentences.map((sentence) => markWords(sentence, words).filter((part) => part instanceof Node).length);
  return sentences[counts.indexOf(Math.max(...counts))] ?? "";
}

/** Warnings: deprecated, not enriched, suspicious. */
function flags(result, mixed) {
  return [
    result.lifecycle === "deprecated" && h("span", { class: "flag" }, "deprecated"),
    mixed && !result.enriched && h("span", { class: "flag quiet", title: "Not enriched by an LLM: shown as registered." }, "as registered"),
    result.suspicious.map((reason) => h("span", { class: "flag bad" }, `suspicious: its text ${reason}`)),
  ];
}

const FIELDS = { positive_examples: "example requests", negative_examples: "don't use for" };

function matchedWords(why) {
  if (!why?.matched.length) return "No matching words: found by meaning alone.";
  const fields = why.fields.map((field) => FIELDS[field] ?? field.replaceAll("_", " ")).join(", ");
  return ["Matched ", why.matched.map((word, i) => [i > 0 && ", ", h("mark", {}, word)]), ` in ${fields}.`];
}
