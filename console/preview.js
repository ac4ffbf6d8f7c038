// The report of `mats preview` for one registration.

import { facts, h, score } from "./dom.js";
import { linkTo } from "./query.js";

/** The report beside the form. */
export function previewReport(report) {
  const { profile, queries, without } = report;
  return [
    h("h2", { id: "preview-title" }, "Preview of this registration"),
    profile.suspicious.map((reason) => h("p", { class: "notice" }, h("strong", {}, "Suspicious: "), `its text ${reason}.`)),
    h("h3", {}, "Queries that should find it"),
    queries.length ? h("ul", {}, queries.map(queryReport)) : h("p", { class: "hint" }, "No query to try: it has no examples, and its text is too short to derive one."),
    h("h3", {}, "Its profile"),
    facts([
      ["described by", profile.described_by],
      ["summary", profile.summary],
      ["action", profile.action],
      ["keywords", profile.keywords.join(", ")],
      ["example requests", profile.positive_examples.length > 0 && h("ul", {}, profile.positive_examples.map((text) => h("li", {}, text)))],
      ["don't use for", profile.negative_examples.length > 0 && h("ul", {}, profile.negative_examples.map((text) => h("li", {}, text)))],
      ["trust", profile.trust === null ? "none given" : `${profile.trust} of 100`],
    ]),
    h("details", {}, h("summary", {}, "Text for the encoder"), h("p", {}, profile.encoded_text)),
    without.map((reason) => h("p", { class: "hint" }, `Without ${reason}`)),
  ];
}

function queryReport({ query, origin, place, looked_at: count, before }) {
  const competitors = before.map((one) => h("li", { value: one.place }, h("a", { href: linkTo("registry", "", { open: one.id }), target: "_blank", rel: "noopener" }, one.id), ` (${score(one.score)}): ${one.why.join("; ")}`));
  return h("li", {}, h("span", { class: `flag ${place === 1 ? "good" : place ? "" : "bad"}` }, place ? `place ${place} of ${count}` : `not among the first ${count}`), " ", h("q", {}, query), h("span", { class: "hint" }, ` ${origin}`),
    competitors.length > 0 && h("details", {}, h("summary", {}, "Ranked above it"), h("ol", {}, competitors)));
}
