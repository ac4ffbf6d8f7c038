// The sources that `mats sync` reads again.

import { copyButton } from "./copy.js";
import { count, fill, h, plural, say } from "./dom.js";
import { askFor } from "./page.js";
import { formatTime } from "./table.js";

/** List the sources, each with its entries, its last success and its error. */
export async function sources(list, signal) {
  const { sources: all } = await askFor(list, "registry/sources", signal);
  fill(list, h("h2", {}, "Sources"),
    all.length ? h("p", { class: "hint" }, `${plural(all.length, "source")}, read again by `, command("mats sync"))
      : h("p", { class: "hint" }, "No sources yet. A file, an address, an MCP server or a registry becomes one with ", command("mats source add WHAT")),
    h("ul", { class: "rows sources" }, all.map(source)));
  say(`${plural(all.length, "source")} listed`);
}

function source({ name, from, namespace, entries, gone, tried, succeeded, error, live }) {
  return h("li", { class: error ? "bad" : undefined },
    h("h3", { class: "name" }, name),
    h("span", { class: "about" }, h("code", {}, from), live && h("span", { class: "flag quiet" }, "live"), namespace && `into ${namespace}`),
    h("span", { class: "about" }, h("span", { class: "number" }, `${count(entries)} ${entries === 1 ? "entry" : "entries"}`),
      gone > 0 && h("span", { class: "flag" }, `${count(gone)} no longer listed`),
      h("span", {}, succeeded ? ["last success ", time(succeeded)] : "never read successfully"), error && tried && h("span", {}, "last try ", time(tried))),
    error && h("span", { class: "summary bad" }, error),
    h("span", { class: "about" }, command(`mats sync ${name}`)));
}

function time(text) {
  return h("time", { datetime: text }, formatTime(text));
}

function command(text) {
  const shown = h("code", {}, text);
  return [shown, " ", copyButton(text, text, () => shown)];
}
