// The signals of a score, as a stacked bar and as a list.

import { h, percent, score } from "./dom.js";

const ORDER = ["llm", "retrieval", "bm25", "quality", "intent"];
const STAND_IN = "retrieval"; // replaces the reranker, with its weight, where there is no score
const LABELS = {
  llm: "Reranker",
  retrieval: "Words and meaning",
  bm25: "Words (BM25)",
  quality: "Trust",
  intent: "Type asked for",
};
const ABSENT = {
  llm: "not scored",
  bm25: "not searched",
  quality: "no trust given",
  intent: "no type inferred",
};

/** The label of a signal. */
export function labelOf(signal) {
  return LABELS[signal] ?? signal;
}

/** The signals to show for these results, in order: those configured, and those measured. */
export function signalsOf(results, weights) {
  const known = new Set([...Object.keys(weights), ...results.flatMap((result) => Object.keys(result.signals))]);
  return [...ORDER.filter((signal) => known.has(signal)), ...[...known].filter((signal) => !ORDER.includes(signal))];
}

/** The contribution of a signal to a score: its weight times its value. */
export function points(result, signal) {
  return (result.weights[signal] ?? 0) * (result.signals[signal] ?? 0);
}

/** The score as one bar, a part for each signal, and the number. */
export function stack(result, signals) {
  const present = signals.filter((signal) => signal in result.signals);
  const summary = present.map((signal) => `${labelOf(signal)} ${score(points(result, signal))}`).join(", ");
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "bar", role: "img", "aria-label": `Score ${score(result.score)}: ${summary}` },
      present.map((signal) => h("span", { class: `part ${signal}`, "--share": points(result, signal), title: `${labelOf(signal)}: ${score(points(result, signal))}` }))),
    h("output", { class: "score", "aria-hidden": "true" }, score(result.score)),
  );
}

/** Each signal: its configured and its effective weight, and its value or `absent`. */
export function list(result, signals, weights) {
  return h("ul", { class: "signals", "aria-label": `Signals of ${result.name}` }, signals.map((signal) => item(result, signal, weights)));
}

function item(result, signal, weights) {
  const isPresent = signal in result.signals;
  return h(
    "li",
    { class: isPresent ? signal : "absent" },
    h("span", { class: "what" }, h("span", { class: `dot ${signal}`, "aria-hidden": "true" }), labelOf(signal), " ", h("span", { class: "weight" }, h("span", { class: "unseen" }, "weight "), weight(result.weights[signal], weights[signal] ?? (signal === STAND_IN ? weights.llm : undefined)))),
    isPresent ? meter(signal, result.signals[signal]) : h("span", { class: "meter" }, `absent: ${ABSENT[signal] ?? "not measured"}`),
  );
}

/** `50 %`, or `50 → 59 %` if the weight of absent signals was distributed. */
function weight(effective, configured) {
  if (effective === undefined) return configured ? h("s", {}, percent(configured)) : "–";
  if (configured === undefined || Math.abs(effective - configured) < 0.005) return percent(effective);
  return [`${Math.round(100 * configured)} → `, percent(effective)];
}

function meter(signal, value) {
  return h("span", { class: "meter" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: `part ${signal}`, "--share": value })), h("span", { class: "value" }, score(value)));
}
