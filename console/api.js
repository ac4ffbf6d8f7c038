// Requests to the service: parsed JSON, or a Problem with a readable message.

import { h } from "./dom.js";

/** A failed request: `status` (0: no response), and the faults by field, if the service names them. */
export class Problem extends Error {
  constructor(status, detail, errors = []) {
    super(detail);
    this.status = status;
    this.errors = errors;
  }
}

const TOKEN = "mats.token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (value) => {
    latest = undefined; // another token may see another overview
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  },
};

let notifyRefusal = () => {};

/** Set the listener for responses that require signing in. */
export function onRefusal(listener) {
  notifyRefusal = listener;
}

export const SIGN_IN = "Sign in at the top of the page: "; // Begins the message of every 401

/**
 * Send a request. Returns parsed JSON.
 *
 * Throws a Problem; an AbortError if `signal` was used.
 */
export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  const bearer = token.get();
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: {
        Accept: "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer: check that it is running.");
  }
  const answer = await parseJson(response);
  if (response.ok) return answer;
  if (response.status === 401 || (response.status === 403 && !answer?.detail)) notifyRefusal(response.status);
  const first = response.status === 401 ? SIGN_IN : "";
  throw new Problem(response.status, first + (answer?.detail ?? `The service answered ${response.status}.`), answer?.errors ?? []);
}

async function parseJson(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    if (response.ok) throw new Problem(response.status, "The service's answer is not JSON.");
    return null;
  }
}

/** An id as the end of a path; its slashes are escaped only if a segment is empty, `.` or `..`. */
export function pathOf(id) {
  const whole = encodeURIComponent(id.toWellFormed());
  return /(^|\/)\.{0,2}(\/|$)/.test(id) ? whole : whole.replaceAll("%2F", "/");
}

/** A query string with some parameters changed: an empty value removes one, a list repeats it. */
export function queryOf(changes, query = "") {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") next.append(name, one);
  }
  const text = next.toString();
  return text ? `?${text}` : "";
}

let health;

/** The answer of `/healthz`, asked once; an empty object if that failed. */
export const service = () => (health ??= ask("healthz").catch(() => ({})));

let latest;
let refusal = "";

/** The current overview of the registry of this service; null for a token that only reads. */
export async function overview({ signal } = {}) {
  if (latest === null) return null;
  try {
    latest = await ask("registry", { signal });
  } catch (error) {
    if (error.status !== 403) throw error;
    refusal = error.message;
    latest = null;
  }
  return latest;
}

/** Whether this token may read the registry; asked once. */
export async function hasRegistry(options) {
  return (latest === undefined ? await overview(options) : latest) !== null;
}

/** A page for a token that only reads. */
export function readOnlyNotice(title) {
  return [h("h1", {}, title), h("p", { class: "notice" }, `Nothing to see or to change here: ${refusal}.`)];
}
