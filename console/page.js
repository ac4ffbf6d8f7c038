// What pages of the registry have in common.

import { ask, hasRegistry, readOnlyReason } from "./api.js";
import { fill, h, refill, say } from "./dom.js";
import * as panel from "./panel.js";

/** The page of a service in AWS, or for a token that only reads; `command` shows the same on the command line. */
export function notHere(title, command) {
  return [h("h1", {}, title), h("p", { class: "notice" }, readOnlyReason() ? `Nothing to see here: ${readOnlyReason()}.` : ["This service has no registry of its own. Over the tables in AWS, see the dashboard and ", h("code", {}, command), "."])];
}

/** What the service answers at a path; the list is marked as busy until then. */
export async function askFor(list, path, signal) {
  list.setAttribute("aria-busy", "true");
  const found = await ask(path, { signal });
  list.removeAttribute("aria-busy");
  return found;
}

/**
 * A page that lists a report of the service, `registry/<name>`, with the panel beside it. One parameter of its address,
 * `standard` by default, is passed on. `show(found, value, params)` returns the content, and what is said of it.
 */
export function reportPage({ name, title, hint, command, parameter, standard, show }) {
  let params, list, side, running, seen;
  const leave = () => panel.leave(name, params);

  async function open(main, given) {
    running = new AbortController();
    list = seen = null;
    if (!(await hasRegistry({ signal: running.signal }))) return void fill(main, notHere(title, command));
    list = h("div", { class: "listing" });
    side = h("div", { class: "side" });
    fill(main, h("h1", {}, title), h("p", { class: "hint" }, hint), h("div", { class: "with-side" }, list, side));
    await update(given);
  }

  async function update(given) {
    params = given;
    if (!list) return;
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const value = params.get(parameter) ?? standard;
    if (seen !== value) {
      const found = await askFor(list, `registry/${name}?${new URLSearchParams({ [parameter]: value })}`, signal);
      const { content, said } = show(found, value, params);
      refill(list, content);
      if (said) say(said);
      seen = value;
    }
    await panel.show(side, params.get("open"), { away: leave, signal });
  }

  function close() {
    running?.abort();
    if (list) panel.close(side);
  }

  return { title, open, update, close, keys: { Escape: leave } };
}
