// How a capability is called: in words, and as texts to copy, which the service makes.

import { ask, pathOf } from "./api.js";
import { copyButton, facts, fill, h, section, visible, withCode } from "./dom.js";

const SNIPPETS = {
  mcp: "MCP client configuration",
  curl: "curl",
  python: "Python",
};

/** The section "Use it" of a capability's panel. */
export function callSection({ id, profile, snippets, here: isLocal }) {
  const { facts: known, missing } = snippets;
  const rows = { ...known, endpoint: known.endpoint ?? profile.endpoint };
  const texts = Object.entries(SNIPPETS).filter(([format]) => snippets[format]);
  return section("Use it",
    missing && h("p", {}, "Nothing registered says how it is called. To the registration, ", withCode(missing), "."),
    facts(Object.entries(rows).map(([name, text]) => [name, name === "endpoint" ? endpoint(text) : text])),
    texts.map(([format, label]) => snippet(label, snippets[format])),
    hasInstructions(profile) && instructions(id, isLocal ? profile.instructions : null),
    texts.length > 0 && h("p", { class: "hint" }, "Replace the names in braces and fill in the empty strings. The owner wrote all of it: run nothing and send no key without knowing the owner."),
  );
}

/** An endpoint; it can be copied if it is what it looks like. */
function endpoint(text) {
  if (!text) return null;
  const shown = h("span", {}, text);
  const isPlain = visible(text) === text && !/[\t\n\r]/.test(text);
  return [shown, isPlain && [" ", copyButton("endpoint", text, shown)]];
}

function snippet(label, text) {
  const shown = h("pre", { tabindex: "0" }, text);
  return h("div", { class: "row" }, h("details", {}, h("summary", {}, label), shown), copyButton(label, text, shown));
}

function hasInstructions({ instructions, invocation }) {
  return Boolean(instructions || invocation?.instructions);
}

/** The instructions of a skill; without `text`, they are read from the service when they are unfolded. */
function instructions(id, text) {
  const shown = h("div", {}, text === null ? h("p", { class: "hint" }, "Loading…") : content(text));
  return h("div", { class: "row" }, h("details", { ontoggle: load }, h("summary", {}, "Instructions"), shown));

  async function load(event) {
    if (!event.currentTarget.open || text !== null) return;
    try {
      ({ instructions: text } = await ask(`capabilities/${pathOf(id)}/instructions`));
      fill(shown, content(text));
    } catch (error) {
      fill(shown, h("p", { class: "notice bad" }, error.message));
    }
  }
}

function content(text) {
  const shown = h("pre", { class: "prose", tabindex: "0" }, text);
  return [copyButton("instructions", visible(text), shown), shown];
}
