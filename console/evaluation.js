// The evaluation page: the stored output of `python -m experiments report`. It computes nothing.

import { ask } from "./api.js";
import { h, fill, plural, withCode } from "./dom.js";
import { linkTo } from "./query.js";

const LONG = 30;
let page, running; // the elements of the page are kept: with its figures they are costly to make again

export const evaluation = { title: "Evaluation", open, update, close };

async function open(main, params) {
  running = new AbortController();
  try {
    page ??= await load(main, running.signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    fill(main, h("h1", {}, "Evaluation"), h("p", { class: "notice" }, "No results are stored here. ", h("code", {}, "make evaluate"), " measures, ", h("code", {}, "python -m experiments report"), " renders."));
    return;
  }
  fill(main, page);
  update(params);
}

async function load(main, signal) {
  fill(main, h("h1", {}, "Evaluation"), h("p", { class: "hint" }, "Loading…"));
  const report = await ask("evaluation/report.json", { signal });
  return [
    h("h1", {}, report.title),
    report.findings?.length > 0 && h("ul", { class: "findings" }, report.findings.map((line) => h("li", {}, withCode(line)))),
    report.intro.map((line) => h("p", { class: "hint" }, withCode(line))),
    h("nav", { "aria-label": "Contents", class: "contents" }, h("ol", {}, report.sections.map(({ id, title }) => h("li", {}, h("a", { href: linkTo("evaluation", "", { section: id }) }, title))))),
    report.sections.map(section),
  ];
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

function section({ id, title, summary, figures, tables }) {
  return h(
    "section",
    { class: "chapter", "aria-labelledby": `section-${id}` },
    h("h2", { id: `section-${id}`, tabindex: "-1" }, title),
    h("p", {}, withCode(summary)),
    figures.map(figure),
    tables.map(table),
  );
}

function figure({ id, alt, caption }) {
  return h("figure", {}, h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": caption }, h("img", { src: `evaluation/${id}.svg`, alt, loading: "lazy" })), h("figcaption", {}, withCode(caption)));
}

function table({ caption, head, rows, labels, notes }) {
  const grid = h(
    "div",
    { class: "wide fits", tabindex: "0", role: "group", "aria-label": caption, "--columns": head.length },
    h("table", { class: "report" }, h("caption", {}, withCode(caption)),
      h("thead", {}, h("tr", {}, head.map((name, i) => h("th", { scope: "col", class: i < labels ? "label" : undefined }, withCode(name))))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.slice(0, labels).some((label) => label.split(":")[0] === "paper") ? "theirs" : undefined }, row.map((text, j) => cell(text, head[j], j < labels, j === 0)))))),
  );
  const shown = rows.length > LONG ? h("details", {}, h("summary", {}, withCode(caption), `: ${plural(rows.length, "row")}`), grid) : grid;
  return [shown, notes.length > 0 && h("ul", { class: "notes" }, notes.map((note) => h("li", {}, withCode(note))))];
}

const ESTIMATE = /^(\S+) (\[[^\]]*\])$/;
const SHORT = 14;

/** A cell: an interval can stand below its estimate, and the name of the column is at hand where a row is a block. */
function cell(text, column, isLabel, isFirst) {
  const [, estimate, interval] = ESTIMATE.exec(text) ?? [];
  const content = interval ? [estimate, " ", h("span", { class: "bounds" }, interval)] : withCode(text);
  const names = [isLabel && "label", !isLabel && text.length < SHORT && "short"].filter(Boolean).join(" ") || undefined;
  return h(isLabel ? "th" : "td", { scope: isLabel ? "row" : undefined, class: names, "data-label": isFirst ? undefined : column.replaceAll("`", "") }, content);
}
