// A question and its answer: the parameters that name it, the last answer kept, so that looking around asks nothing.

import { ask, queryOf, service } from "./api.js";

export const KINDS = ["model", "agent", "tool", "skill"];

/** The body of `POST /discover` for a page's parameters; null where nothing is asked. */
export function questionOf(params) {
  const query = params.get("q")?.trim();
  if (!query) return null;
  const kinds = params.getAll("kind").filter((kind) => KINDS.includes(kind));
  const namespaces = params.getAll("ns").map((one) => one.trim()).filter(Boolean);
  return { query, ...(kinds.length && { kinds }), ...(namespaces.length && { namespaces }), explain: true };
}

let kept = { key: "", answer: null };

/** The answer to a question, as kept or anew: the API's answer with the configured `base` weights. */
export async function answerTo(question, { signal } = {}) {
  const key = JSON.stringify(question);
  if (kept.key !== key) {
    const [answer, health] = await Promise.all([ask("discover", { method: "POST", body: question, signal }), service()]);
    signal?.throwIfAborted();
    kept = { key, answer: { ...answer, base: health.weights ?? {} } };
  }
  return kept.answer;
}

/** Keep no answer: it is asked for anew, by whoever asks now. */
export function forget() {
  kept = { key: "", answer: null };
}

/** Whether the answer to a question is at hand. */
export function isKept(question) {
  return kept.key === JSON.stringify(question);
}

/** The address of a page, with some of these parameters changed as `queryOf` does. */
export function linkTo(page, params, changes = {}) {
  return `#/${page}${queryOf(changes, params)}`;
}
