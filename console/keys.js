// Keyboard shortcuts outside text fields, and the dialog that lists them.

import { h } from "./dom.js";

const PAGES = { s: "search", r: "registry", u: "use", e: "evaluation", n: "edit", i: "import" };
const EVERYWHERE = [
  ["/", "to the search or filter box"],
  ["g then s, r, u, e", "to Search, Registry, Use, Evaluation"],
  ["g then n, i", "a new registration, an import"],
  ["j, k or ↓, ↑", "next, previous in a list"],
  ["Enter", "open the one in focus"],
  ["c", "pick the one in focus for comparison"],
  ["x", "select the one in focus in the registry"],
  ["Esc", "close what is open"],
  ["?", "this list"],
];

/** Start listening; `own` returns the keys of the current page: functions by key. */
export function listen(own) {
  let afterG = false;
  document.getElementById("keys").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key !== "Escape" && isTextField(event.target)) return;
    const isTarget = afterG;
    afterG = false;
    if (isTarget && PAGES[event.key]) location.hash = `#/${PAGES[event.key]}`;
    else if (event.key === "g") afterG = true;
    else if (event.key === "?") help();
    else if (event.key === "/") focusFirst();
    else if (!own()[event.key]?.(event)) return;
    event.preventDefault();
  });
}

function isTextField(target) {
  return target.isContentEditable || (target.matches("input, textarea, select") && !target.matches("[type=checkbox], [type=radio]"));
}

function focusFirst() {
  const box = document.querySelector("main input[type=search]");
  box?.focus();
  box?.select();
}

function help() {
  const rows = EVERYWHERE.map(([key, effect]) => [h("dt", {}, key), h("dd", {}, effect)]);
  const dialog = h(
    "dialog",
    { "aria-labelledby": "keys-title", onclose: () => dialog.remove() },
    h("h2", { id: "keys-title" }, "Keys"),
    h("dl", { class: "keys" }, rows),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** Keys that move the focus among elements: j, k and the arrows. `all` returns them in order. */
export function moveKeys(all) {
  const step = (by) => (event) => {
    if (event.key.startsWith("Arrow") && !all().includes(document.activeElement)) return false;
    const elements = all();
    const at = elements.findIndex((element) => element === document.activeElement || element.closest("li, tr")?.contains(document.activeElement));
    const next = elements[Math.min(elements.length - 1, Math.max(0, at === -1 ? 0 : at + by))];
    next?.focus();
    return Boolean(next);
  };
  return { j: step(1), k: step(-1), ArrowDown: step(1), ArrowUp: step(-1) };
}
