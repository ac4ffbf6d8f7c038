// What stands above a shortlist: the verdict, what the answer had to do without, what it took.

import { h, count, plural } from "./dom.js";

const VERDICTS = {
  match: ["Match", "The registry has this."],
  weak: ["Weak", "Nothing here clearly does this; look before you use one."],
  none: ["None", "Nothing here seems to do this."],
};
const WITHOUT = {
  llm: "No LLM judged this answer: words and meaning stand in for it, at its weight.",
  neural: "Nothing was compared by meaning, only by words.",
  lexical: "No words were searched, only meaning.",
  audiences: "Who you are could not be looked up: only what everyone may see is here.",
};
const STAGES = ["queue", "encode", "lexical", "neural", "fetch", "measure", "rerank"];

/** The head of an answer. */
export function summary(answer) {
  const [name, sentence] = VERDICTS[answer.verdict] ?? [answer.verdict, ""];
  return h(
    "div",
    { class: "summary-box" },
    h("p", { class: `verdict ${answer.verdict}` }, h("strong", {}, name), " ", sentence, answer.intent && [" It looks for: ", h("code", {}, answer.intent), "."]),
    answer.degraded.map((stage) => h("p", { class: "notice" }, h("strong", {}, `Degraded: ${stage}. `), WITHOUT[stage] ?? "This part was not to be had.")),
    took(answer),
  );
}

function took({ took_ms: ms, cost, versions, query_id: id, results }) {
  const stages = STAGES.filter((stage) => stage in ms);
  const sum = stages.reduce((total, stage) => total + ms[stage], 0) || 1;
  const told = stages.map((stage) => `${stage} ${ms[stage]} ms`).join(", ");
  return h(
    "details",
    { class: "took" },
    h("summary", {}, `${plural(results.length, "result")} in ${Math.round(ms.total)} ms, ${price(cost)}`),
    h("div", { class: "bar stages", role: "img", "aria-label": `Of the time: ${told}` }, stages.map((stage, i) => h("span", { class: `part stage${i}`, "--share": ms[stage] / sum }))),
    h("dl", { class: "facts" },
      stages.map((stage, i) => [h("dt", {}, h("span", { class: `dot stage${i}`, "aria-hidden": "true" }), stage), h("dd", {}, `${ms[stage]} ms`)]),
      h("dt", {}, "tokens"), h("dd", {}, `${count(cost.input_tokens)} in, ${count(cost.output_tokens)} out`),
      Object.entries(versions.models).map(([role, model]) => [h("dt", {}, role === "rerank" ? "judge" : "encoder"), h("dd", {}, model)]),
      h("dt", {}, "index"), h("dd", {}, versions.index),
      h("dt", {}, "question"), h("dd", {}, h("code", {}, id))),
  );
}

function price({ usd, input_tokens: tokens }) {
  if (usd === null) return "at a price nobody told";
  if (!usd) return tokens ? "free" : "no model was paid";
  return `${usd < 0.01 ? usd.toFixed(6) : usd.toFixed(4)} USD`;
}
