// Routing by the hash of the address: every view has an address.

import { hasRegistry, onRefusal, token } from "./api.js";
import { h, fill, say } from "./dom.js";
import { editor } from "./editor.js";
import { importer } from "./import.js";
import { clearAnswer } from "./query.js";
import { registry } from "./registry.js";
import { review } from "./review.js";
import { search } from "./search.js";
import { signIn, signInByLink, signOut } from "./signin.js";
import { use } from "./use.js";

/**
 * A page: its title; `open(main, params)` fills the main element; `update(params)` applies changed parameters; `close()`
 * runs before another page opens (false prevents that); `escape()` closes what is open; `links()`: the links that j and k
 * walk through; `hasInput`: it is not opened anew after signing in.
 */
const PAGES = { search, registry, edit: editor, import: importer, review, use };

const main = document.getElementById("main");
const button = document.getElementById("sign");
let shown = null;
let current = location.hash;

/** The page's name and its parameters from the hash. */
function parseAddress() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: Object.hasOwn(PAGES, name) ? name : "search", params: new URLSearchParams(query) };
}

async function route() {
  if (signInByLink()) showSignButton(true); // also in a tab that shows the console already
  const address = location.hash;
  const { name, params } = parseAddress();
  const page = PAGES[name];
  const before = current;
  if (shown !== null && shown !== page && shown.close?.() === false) return void stay(before);
  current = address;
  for (const link of document.querySelectorAll("nav [data-page]")) {
    if (link.dataset.page === (name === "edit" ? "registry" : name)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (shown === page) {
      if ((await page.update(params)) === false) return void stay(before);
    } else {
      const moved = shown !== null;
      shown = page;
      fill(main);
      document.title = `${page.title} · mats`;
      await page.open(main, params);
      if (page.hasInput) await askToSignIn();
      if (moved && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
      if (moved) scrollTo(0, 0);
    }
    if (location.hash === address) main.dataset.shown = address; // rendering is complete; tests wait for this
  } catch (error) {
    if (error.name !== "AbortError") showError(error);
  }
}

/** Say before a form is filled that a token is needed to send it. */
async function askToSignIn() {
  const heading = main.querySelector("h1");
  if (token.get() || !(await hasRegistry()) || !heading?.isConnected) return; // another page may be shown by now
  showSignButton(true);
  heading.after(h("p", { class: "notice", id: "sign-first" }, "Sign in first: previewing and saving need a token. ",
    h("button", { type: "button", onclick: toggleSignIn }, "Sign in now")));
}

/** Restore the address of the current page, which has unsaved changes. */
function stay(address) {
  current = address;
  history.replaceState(null, "", address || location.pathname);
}

function showError(error) {
  const message = error.status === undefined ? `Internal error of the console: ${error.message}` : error.message;
  fill(main, h("div", { class: "notice bad", role: "alert" }, h("p", {}, message), h("button", { type: "button", onclick: route }, "Try again")));
  shown = null;
  main.dataset.shown = location.hash;
  say(message);
  if (error.status === undefined) console.error(error);
}

async function toggleSignIn() {
  if (token.get()) signOut();
  else if (!(await signIn())) return;
  clearAnswer();
  showSignButton(true);
  if (token.get()) document.getElementById("sign-first")?.remove();
  if (token.get() && shown?.hasInput) return; // what is typed stays, and can be sent now
  shown = null;
  await route();
}

function showSignButton(isNeeded) {
  button.hidden = !(isNeeded || token.get());
  button.textContent = token.get() ? "Sign out" : "Sign in";
}

/** Keys outside text fields: / to the search box, j and k through the list, Escape closes what is open. */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return void (shown?.escape?.() && event.preventDefault());
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  const target = event.key === "/" ? main.querySelector("input[type=search]") : { j: step(1), k: step(-1) }[event.key];
  if (!target) return;
  event.preventDefault();
  target.focus();
  target.select?.();
}

/** The link after or before the one of the row with the focus. */
function step(by) {
  const links = (shown?.links?.() ?? []).filter((link) => link.checkVisibility());
  const at = links.findIndex((link) => link.closest("li, tr")?.contains(document.activeElement));
  return links[Math.min(links.length - 1, Math.max(0, at === -1 ? 0 : at + by))];
}

button.addEventListener("click", toggleSignIn);
onRefusal(() => {
  token.set(null);
  showSignButton(true);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address is not a page
  main.focus();
});
document.addEventListener("keydown", onKey);
addEventListener("hashchange", route);
showSignButton(false);
await route();
if (await hasRegistry().catch(() => false)) showSignButton(true); // its changes need a token
