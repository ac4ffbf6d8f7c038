// The head of a shortlist: verdict, degradations, time and cost.

import { h, count, plural } from "./dom.js";

const VERDICTS = {
  match: ["Match", "The registry has this."],
  weak: ["Weak", "No clear match: check before you use one."],
  none: ["None", "No capability matches."],
};
const WITHOUT = {
  llm: "Without the reranker, words and meaning take its weight.",
  neural: "Searched by words only.",
  lexical: "Searched by meaning only.",
  audiences: "Your audiences could not be looked up: only public capabilities are shown.",
};
const STAGES = ["queue", "encode", "lexical", "neural", "fetch", "measure", "rerank"];

/** The head of an answer. */
export function summary(answer) {
  const [name, sentence] = VERDICTS[answer.verdict] ?? [answer.verdict, ""];
  return h(
    "div",
    { class: "summary-box" },
    h("p", { class: `verdict ${answer.verdict}` }, h("strong", {}, name), " ", sentence, answer.intent && [" It looks for: ", h("code", {}, answer.intent), "."]),
    answer.degraded.map((stage) => h("p", { class: "notice" }, h("strong", {}, `Degraded: ${stage}. `), WITHOUT[stage] ?? "This part was not available.")),
    (answer.notes ?? []).map((note) => h("p", { class: "notice" }, h("strong", {}, "Note: "), note)),
    (answer.without ?? []).map((stage) => h("p", { class: "notice" }, h("strong", {}, `Not configured: ${stage}. `), WITHOUT[stage] ?? "")),
    timing(answer),
  );
}

function timing({ took_ms: ms, cost, versions, query_id: id, results }) {
  const stages = STAGES.filter((stage) => stage in ms);
  const sum = stages.reduce((total, stage) => total + ms[stage], 0) || 1;
  const summary = stages.map((stage) => `${stage} ${ms[stage]} ms`).join(", ");
  return h(
    "details",
    { class: "took" },
    h("summary", {}, `${plural(results.length, "result")} in ${Math.round(ms.total)} ms, ${price(cost)}`),
    h("div", { class: "bar stages", role: "img", "aria-label": `Of the time: ${summary}` }, stages.map((stage, i) => h("span", { class: `part stage${i}`, "--share": ms[stage] / sum }))),
    h("dl", { class: "facts" },
      stages.map((stage, i) => [h("dt", {}, h("span", { class: `dot stage${i}`, "aria-hidden": "true" }), stage), h("dd", {}, `${ms[stage]} ms`)]),
      h("dt", {}, "tokens"), h("dd", {}, `${count(cost.input_tokens)} in, ${count(cost.output_tokens)} out`),
      Object.entries(versions.models).map(([role, model]) => [h("dt", {}, role === "rerank" ? "reranker" : "encoder"), h("dd", {}, model)]),
      h("dt", {}, "index"), h("dd", {}, versions.index),
      h("dt", {}, "query id"), h("dd", {}, h("code", {}, id))),
  );
}

function price({ usd, input_tokens: tokens }) {
  if (usd === null) return "at an unknown price";
  if (!usd) return tokens ? "free" : "no model called";
  return `${usd < 0.01 ? usd.toFixed(6) : usd.toFixed(4)} USD`;
}
