// The head of a shortlist: verdict, degradations, time and cost.

import { h, count, plural } from "./dom.js";
import { linkTo } from "./query.js";

const VERDICTS = {
  match: ["Match", "The registry has this."],
  weak: ["Weak", "No clear match: check before you use one."],
  none: ["None", "No capability matches: the nearest are probably not it."],
};
const PARTS = {
  llm: ["language model", "Words and meaning take its weight."],
  neural: ["encoder", "Searched by words only."],
  lexical: ["word search", "Searched by meaning only."],
  bm25: ["scoring of words", "Ranked without it."],
  audiences: ["lookup of your audiences", "Only public capabilities are shown."],
  memory: ["memory of earlier requests", "Ranked without it."],
  receipt: ["receipt", "Outcomes of this answer cannot be reported."],
};

/** The head of an answer: what failed is an alarm, what is not configured is a line of text. */
export function summary(answer) {
  const [name, told] = VERDICTS[answer.verdict] ?? [answer.verdict, ""];
  const sentence = answer.results.length > 0 || answer.verdict !== "none" ? told : "No capability matches.";
  return h(
    "div",
    {},
    h("p", { class: `verdict ${answer.verdict}` }, h("strong", {}, name), " ", sentence, answer.intent && [" It looks for: ", h("code", {}, answer.intent), "."]),
    answer.degraded.map((part) => h("p", { class: "notice" }, h("strong", {}, `${failure(part)} `), PARTS[part]?.[1] ?? "The answer goes without it.")),
    (answer.notes ?? []).map((note) => h("p", { class: "notice calm" }, h("strong", {}, "Note: "), note)),
    (answer.without ?? []).map((part) => h("p", { class: "hint" }, `No ${PARTS[part]?.[0] ?? part} configured. ${PARTS[part]?.[1] ?? ""}`)),
    timing(answer),
  );
}

function failure(part) {
  return part in PARTS ? `The ${PARTS[part][0]} failed or was late.` : `Degraded: ${part}.`;
}

/** What to do when nothing serves a request. */
export function nextSteps(params) {
  const isNarrowed = params.has("kind") || params.has("ns");
  return h(
    "div",
    {},
    h("h2", {}, "What to do next"),
    h("ul", {},
      isNarrowed && h("li", {}, h("a", { href: linkTo("search", params, { kind: [], ns: [], open: undefined }) }, "Search all kinds and namespaces"), "."),
      h("li", {}, "Say what is to be done, and to what, in other words."),
      h("li", {}, h("a", { href: "#/registry" }, "See what is registered"), ", or ", h("a", { href: "#/edit" }, "register what serves this"), "."),
    ),
  );
}

function timing({ took_ms: ms, cost, versions, query_id: id, results }) {
  return h(
    "details",
    { class: "took" },
    h("summary", {}, `${plural(results.length, "result")} in ${Math.round(ms.total)} ms, ${price(cost)}`),
    h("dl", { class: "facts" },
      Object.entries(ms).filter(([stage]) => stage !== "total").map(([stage, took]) => [h("dt", {}, stage), h("dd", {}, `${took} ms`)]),
      h("dt", {}, "tokens"), h("dd", {}, `${count(cost.input_tokens)} in, ${count(cost.output_tokens)} out`),
      Object.entries(versions.models).map(([role, model]) => [h("dt", {}, role === "rerank" ? "reranker" : "encoder"), h("dd", {}, model)]),
      h("dt", {}, "index"), h("dd", {}, versions.index),
      h("dt", {}, "query id"), h("dd", {}, h("code", {}, id))),
  );
}

function price({ usd, input_tokens: tokens }) {
  if (usd === null) return "at an unknown price";
  if (!usd) return tokens ? "free" : "no model cost";
  return `${usd < 0.01 ? usd.toFixed(6) : usd.toFixed(4)} USD`;
}
