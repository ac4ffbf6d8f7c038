// What operators know: which capability serves a request, and which words mean the same.

import { ask } from "./api.js";
import { fill, h, plural, say } from "./dom.js";

/** List lessons and synonyms, each with a button that withdraws it, and the forms that add one. */
export async function known(list, signal) {
  const [lessons, synonyms] = await Promise.all(["lessons", "synonyms"].map(read));
  const status = h("p", { class: "status", role: "status" });
  fill(list, h("h2", {}, "Lessons"),
    h("p", { class: "hint" }, "A request that an operator taught has its capability first; nearly equal ones rank it higher."),
    form("lesson", { request: "what callers ask", id: "namespace/name" }, (values) => send("lessons", values)),
    rows(lessons, ({ request, id }) => [`${request} → ${id}`, () => send("lessons", { request })]),
    h("h2", {}, "Synonyms"),
    h("p", { class: "hint" }, "A request with one of these words is searched with the others, too."),
    form("synonym", { words: "PR, pull request" }, ({ words }) => send("synonyms", { words: words.split(",").map((word) => word.trim()).filter(Boolean) })),
    rows(synonyms, (words) => [words.join(", "), () => send("synonyms", { words, remove: true })]), status);

  async function read(name) {
    try {
      return (await ask(`registry/${name}`, { signal }))[name];
    } catch (error) {
      if (signal.aborted) throw error;
      return error.message;
    }
  }

  async function send(name, body) {
    try {
      await ask(`registry/${name}`, { method: "POST", body });
      await known(list, signal);
      say("saved");
    } catch (error) {
      fill(status, error.message);
    }
  }
}

function rows(found, row) {
  if (typeof found === "string") return h("p", { class: "summary bad" }, found);
  return [h("p", { class: "hint" }, plural(found.length, "entry", "entries")), h("ul", { class: "rows" }, found.map((one) => {
    const [text, withdraw] = row(one);
    return h("li", {}, h("span", { class: "name" }, text), h("span", { class: "row" }, h("button", { type: "button", onclick: withdraw }, "Withdraw", h("span", { class: "unseen" }, " ", text))));
  }))];
}

function form(name, fields, send) {
  const inputs = Object.entries(fields).map(([field, hint]) => [field, h("input", { id: `${name}-${field}`, required: true, autocomplete: "off", placeholder: hint })]);
  return h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    send(Object.fromEntries(inputs.map(([field, input]) => [field, input.value.trim()])));
  } }, inputs.map(([field, input]) => h("label", {}, h("span", {}, `${field} `), input)), h("button", { type: "submit" }, "Add"));
}
