// What the service answers, or a Problem that a person can act on.

/** A failed request: `status` (0: nobody answered), and what is wrong with which field, if the service said so. */
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
  set: (value) => (value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN)),
};

let told = () => {};

/** Whom to tell when the service wants to know who is asking. */
export function onRefusal(listener) {
  told = listener;
}

/**
 * Ask the service. Answers parsed JSON.
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
    throw new Problem(0, "The service does not answer. Is it running?");
  }
  const answer = await parsed(response);
  if (response.ok) return answer;
  if (response.status === 401 || (response.status === 403 && !answer?.detail)) told(response.status);
  throw new Problem(response.status, answer?.detail ?? `The service answered ${response.status}.`, answer?.errors ?? []);
}

async function parsed(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    if (response.ok) throw new Problem(response.status, "The service's answer is not JSON.");
    return null;
  }
}

/** An id as the end of a path: slashes stay where no segment could be taken for `.` or `..`. */
export function pathOf(id) {
  const whole = encodeURIComponent(id.toWellFormed());
  return /(^|\/)\.{0,2}(\/|$)/.test(id) ? whole : whole.replaceAll("%2F", "/");
}

/** A query string, of another one with some parameters changed: nothing or empty takes one out, lists repeat it. */
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

/** What the service is made of, asked once; an empty object if it does not say. */
export function service() {
  health ??= ask("healthz").catch(() => {
    health = undefined;
    return {};
  });
  return health;
}

let desk;

/** The overview of the registry of this machine, as it is now; null where the service has none (in AWS). */
export async function overview({ signal } = {}) {
  if (desk === null) return null;
  try {
    desk = await ask("registry", { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    desk = null;
  }
  return desk;
}
