// The evaluation page: the stored output of `mats report`. It computes nothing.

import { ask } from "./api.js";
import { h, fill, plural, withCode } from "./dom.js";
import { linkTo } from "./query.js";

const LONG = 30;
let report, running;

export const evaluation = { title: "Evaluation", open, update, close };

async function open(main, params) {
  running = new AbortController();
  fill(main, h("h1", {}, "Evaluation"), h("p", { class: "hint" }, "Loading…"));
  try {
    report ??= await ask("evaluation/report.json", { signal: running.signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    fill(main, h("h1", {}, "Evaluation"), h("p", { class: "notice" }, "No results are stored here. ", h("code", {}, "make evaluate"), " measures, ", h("code", {}, "mats report"), " renders."));
    return;
  }
  fill(
    main,
    h("h1", {}, report.title),
    report.findings?.length > 0 && h("ul", { class: "findings" }, report.findings.map((line) => h("li", {}, withCode(line)))),
    report.intro.map((line) => h("p", { class: "hint" }, withCode(line))),
    h("nav", { "aria-label": "Contents", class: "contents" }, h("ol", {}, report.sections.map(({ id, title }) => h("li", {}, h("a", { href: linkTo("evaluation", "", { section: id }) }, title))))),
    report.sections.map(section),
  );
  update(params);
}

function close() {
  running.abort();
}

function update(params) {
  const id = params.get("section");
  const heading = id && document.getElementById(`section-${id}`);
  if (!heading) return;
  heading.scrollIntoView();
  heading.focus({ preventScroll: true });
}

function section({ id, title, says, figures, tables }) {
  return h(
    "section",
    { class: "chapter", "aria-labelledby": `section-${id}` },
    h("h2", { id: `section-${id}`, tabindex: "-1" }, title),
    h("p", {}, withCode(says)),
    figures.map(figure),
    tables.map(table),
  );
}

function figure({ src, alt, caption }) {
  return h("figure", {}, h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption }, h("img", { src: `evaluation/${src}`, alt, loading: "lazy" })), h("figcaption", {}, withCode(caption)));
}

function table({ caption, head, rows, labels, theirs, notes }) {
  const grid = h(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": caption },
    h("table", {}, h("caption", {}, withCode(caption)),
      h("thead", {}, h("tr", {}, head.map((name, i) => h("th", { scope: "col", class: i < labels ? "label" : undefined }, withCode(name))))),
      h("tbody", {}, rows.map((row, i) => h("tr", { class: theirs.includes(i) ? "theirs" : undefined }, row.map((cell, j) => (j < labels ? h("th", { scope: "row", class: "label" }, withCode(cell)) : h("td", {}, withCode(cell)))))))),
  );
  const shown = rows.length > LONG ? h("details", {}, h("summary", {}, withCode(caption), `: ${plural(rows.length, "row")}`), grid) : grid;
  return [shown, notes.length > 0 && h("ul", { class: "notes" }, notes.map((note) => h("li", {}, withCode(note))))];
}
