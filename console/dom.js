// Helpers that build elements and texts. Strings become text nodes; none is ever parsed as markup.

const SPOKEN = new Set(["alt", "aria-label", "title"]);

/**
 * An element. Attributes: `class`, `on<event>` listeners, booleans, `value`-like properties, everything else as
 * attributes; undefined and false are left out. Children: nodes, texts, arrays of them; null and false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : SPOKEN.has(name) ? visible(String(value)) : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(String(child)))));
}

// Characters that are invisible or change the text direction; they are escaped, so that no text can imitate another.
// The same characters as in `is_hidden` of the core, except variation selectors of emoji.
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8\u{e0000}-\u{e0fff}]|(?<!\p{Emoji})[\ufe0e\ufe0f]/gu;

/** A text with invisible characters replaced by their code point. */
export function visible(text) {
  return text.replace(UNSEEN, (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

/** Replace the children of an element; the one with the id that has the focus keeps it. */
export function refill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  fill(element, ...children);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/** Set the text of a box, unless it is equal: that would move the cursor. */
export function setText(field, text) {
  if (field.value.trim() !== text.trim()) field.value = text;
}

const WORD = /[\p{Lu}]?[\p{Ll}\p{M}]+|[\p{Lu}]+(?![\p{Ll}])|[\p{N}]+|[\p{L}\p{N}\p{M}]+/gu;
const WHOLE = /[\p{L}\p{N}\p{M}]+/gu;

/** A text with the words of a set marked, also within a name such as `createRefund`. */
export function markWords(text, words) {
  if (!words?.size) return [text];
  const parts = [];
  let end = 0;
  for (const whole of text.matchAll(WHOLE)) {
    const inside = words.has(whole[0].toLowerCase()) ? [whole] : [...whole[0].matchAll(WORD)];
    for (const word of inside) {
      if (!words.has(word[0].toLowerCase())) continue;
      const start = word === whole ? whole.index : whole.index + word.index;
      parts.push(text.slice(end, start), h("mark", {}, word[0]));
      end = start + word[0].length;
    }
  }
  return [...parts, text.slice(end)];
}

/** Plain text with words between backticks as code. */
export function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? h("code", {}, part) : part));
}

/** Announce a text to screen readers. */
export function say(text) {
  document.getElementById("says").textContent = visible(text);
}

const COUNT = new Intl.NumberFormat("en");
const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

/** 20,000 */
export const count = (number) => COUNT.format(number);

/** 0.84 */
export const score = (number) => number.toFixed(2);

/** 59 % of 0.588 */
export const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** 1 capability, 2 capabilities */
export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** A time in local form; `day`: its date, with the whole time as its title. */
export function time(text, { day = false } = {}) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text || "–";
  return h("time", { datetime: text, title: day && TIME.format(date) }, (day ? DAY : TIME).format(date));
}

/** A button that copies a text; `what` names it. Where the browser refuses, the text in `source` is selected instead. */
export function copyButton(what, text, source = null) {
  const label = h("span", {}, "Copy");
  return h("button", { type: "button", onclick: copy }, label, h("span", { class: "unseen" }, ` ${what}`));

  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      fill(label, "Copied");
      say(`Copied ${what}`);
    } catch {
      source?.closest("details")?.setAttribute("open", "");
      if (source) getSelection().selectAllChildren(source);
      fill(label, "Not copied");
      say(source ? `Not copied: press Ctrl+C to copy the selected ${what}` : "Not copied: the browser refuses");
    }
    setTimeout(() => fill(label, "Copy"), 2_000);
  }
}

/** A button that acts at the second press. `of` is read out after its name, where several have the same. */
export function twice(name, act, { of = "", kind = "bad" } = {}) {
  const button = h("button", { type: "button", class: kind, onclick: press, onblur: () => label(false) });
  let isSure;
  label(false);
  return button;

  function label(sure) {
    isSure = sure;
    fill(button, sure ? `${name}: sure?` : name, of && h("span", { class: "unseen" }, ` ${of}`));
  }

  function press() {
    if (!isSure) return label(true);
    label(false);
    return act();
  }
}

/** A titled section. */
export function section(title, ...content) {
  return h("section", {}, h("h3", {}, title), content);
}

/** Names and values, without empty ones. */
export function facts(rows) {
  const there = rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== 0 && value !== false);
  return h("dl", { class: "facts" }, there.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value)]));
}
