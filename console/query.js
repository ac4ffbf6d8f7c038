// Queries: their parameters in the address, and a cache of the last answer, so that navigation sends no request.

import { ask, queryOf, service } from "./api.js";

export const KINDS = ["model", "agent", "tool", "skill"];

/** The body of `POST /discover` for a page's parameters; null without a query. */
export function questionOf(params) {
  const query = params.get("q")?.trim();
  if (!query) return null;
  const kinds = params.getAll("kind").filter((kind) => KINDS.includes(kind));
  const namespaces = params.getAll("ns").map((one) => one.trim()).filter(Boolean);
  return { query, ...(kinds.length && { kinds }), ...(namespaces.length && { namespaces }), explain: true };
}

let cached = { key: "", answer: null };

/** The answer to a query, from the cache or the API, with the configured `base` weights. */
export async function answerTo(question, { signal } = {}) {
  const key = JSON.stringify(question);
  if (cached.key !== key) {
    const [answer, health] = await Promise.all([ask("discover", { method: "POST", body: question, signal }), service()]);
    signal?.throwIfAborted();
    cached = { key, answer: { ...answer, base: health.weights ?? {} } };
  }
  return cached.answer;
}

/** Clear the cache: the caller or the index may have changed. */
export function clearAnswer() {
  cached = { key: "", answer: null };
}

/** The address of a page, with some of these parameters changed as `queryOf` does. */
export function linkTo(page, params, changes = {}) {
  return `#/${page}${queryOf(changes, params)}`;
}
