// Copying to the clipboard.

import { fill, h, say } from "./dom.js";

const SHOWN_MS = 2_000;

/**
 * A button that copies a text; `what` names it. If the browser refuses, the text in `source` is selected, to be copied by
 * key.
 */
export function copyButton(what, text, source = () => null) {
  const label = h("span", {}, "Copy");
  let timer;
  return h("button", { type: "button", class: "copy", onclick: copy }, label, h("span", { class: "unseen" }, ` ${what}`));

  async function copy() {
    const isCopied = await write(text);
    const selected = isCopied ? null : select(source());
    fill(label, isCopied ? "Copied" : "Not copied");
    say(isCopied ? `Copied ${what}` : selected ? `Not copied: press Ctrl+C to copy the selected ${what}` : `Not copied: the browser refuses`);
    clearTimeout(timer);
    timer = setTimeout(() => fill(label, "Copy"), SHOWN_MS);
  }
}

/** Write a text to the clipboard; whether that worked. Pages that are not secure have no clipboard API. */
async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeBySelection(text);
  }
}

function writeBySelection(text) {
  const focused = document.activeElement;
  const area = h("textarea", { class: "unseen", readonly: true, tabindex: "-1", "aria-hidden": "true", value: text });
  document.body.append(area);
  area.select();
  let isCopied = false;
  try {
    isCopied = document.execCommand("copy");
  } catch {
    // refused
  }
  area.remove();
  focused?.focus({ preventScroll: true });
  return isCopied;
}

function select(element) {
  if (!element) return false;
  for (let folded = element.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
  getSelection().selectAllChildren(element);
  return true;
}
