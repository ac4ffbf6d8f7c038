// What a score is made of: a row per signal, present or absent, and the stack they make.

import { h, percent, score } from "./dom.js";

const ORDER = ["llm", "retrieval", "bm25", "quality", "intent"];
const SAID = {
  llm: "Judge",
  retrieval: "Words and meaning",
  bm25: "Words (BM25)",
  quality: "Trust",
  intent: "Type asked for",
};
const ABSENT = {
  llm: "no LLM judged this one",
  retrieval: "not needed: it was judged",
  bm25: "words were not searched",
  quality: "operators gave it no trust",
  intent: "no type was inferred, or it has no type tags",
};

/** A signal as people call it. */
export function named(signal) {
  return SAID[signal] ?? signal;
}

/** The signals to show for these results, in order: those configured, and those measured. */
export function signalsOf(results, weights) {
  const known = new Set([...Object.keys(weights), ...results.flatMap((result) => Object.keys(result.signals))]);
  return [...ORDER.filter((signal) => known.has(signal)), ...[...known].filter((signal) => !ORDER.includes(signal))];
}

/** What a signal adds to a score: its share of the weight times its value. */
export function points(result, signal) {
  return (result.weights[signal] ?? 0) * (result.signals[signal] ?? 0);
}

/** The score as one bar, a part for each signal, and the number. */
export function stack(result, signals) {
  const present = signals.filter((signal) => signal in result.signals);
  const told = present.map((signal) => `${named(signal)} ${score(points(result, signal))}`).join(", ");
  return h(
    "div",
    { class: "stack" },
    h("div", { class: "bar", role: "img", "aria-label": `Score ${score(result.score)}: ${told}` },
      present.map((signal) => h("span", { class: `part ${signal}`, "--share": points(result, signal), title: `${named(signal)}: ${score(points(result, signal))}` }))),
    h("output", { class: "score", "aria-hidden": "true" }, score(result.score)),
  );
}

/** A row for each signal: its weight as configured and as it counted here, and its value, or that it is absent. */
export function rows(result, signals, weights) {
  return h(
    "table",
    { class: "signals" },
    h("caption", { class: "unseen" }, `Signals of ${result.name}`),
    h("thead", { class: "unseen" }, h("tr", {}, ["signal", "weight", "value"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, signals.map((signal) => row(result, signal, weights))),
  );
}

function row(result, signal, weights) {
  const there = signal in result.signals;
  return h(
    "tr",
    { class: there ? signal : "absent" },
    h("th", { scope: "row" }, h("span", { class: `dot ${signal}`, "aria-hidden": "true" }), named(signal), h("code", {}, signal)),
    h("td", { class: "weight" }, weight(result.weights[signal], weights[signal])),
    h("td", {}, there ? meter(signal, result.signals[signal]) : h("span", { class: "why" }, `absent: ${ABSENT[signal] ?? "not measured"}`)),
  );
}

/** `50 %`, or `50 → 59 %` where the weight of absent ones was shared out. */
function weight(counted, configured) {
  if (counted === undefined) return configured ? h("s", {}, percent(configured)) : "–";
  if (configured === undefined || Math.abs(counted - configured) < 0.005) return percent(counted);
  return [`${Math.round(100 * configured)} → `, h("strong", {}, percent(counted))];
}

function meter(signal, value) {
  return h("div", { class: "meter" }, h("div", { class: "bar", "aria-hidden": "true" }, h("span", { class: `part ${signal}`, "--share": value })), h("span", { class: "value" }, score(value)));
}
