// Routing by the hash of the address: every view has an address, and a static host suffices.

import { onRefusal, token } from "./api.js";
import { h, fill, say } from "./dom.js";
import * as keys from "./keys.js";
import { finishSignIn, signIn, signInByLink, signOut } from "./signin.js";
import { compare } from "./compare.js";
import { editor } from "./editor.js";
import { evaluation } from "./evaluation.js";
import { importer } from "./import.js";
import { clearAnswer } from "./query.js";
import { registry } from "./registry.js";
import { search } from "./search.js";
import { theme } from "./theme.js";
import { use } from "./use.js";

/**
 * A page: its title; `open(main, params)` fills the main element; `update(params)` applies changed parameters; `close()`
 * runs before another page opens (false prevents that); its own keys; `hasInput`: it is not opened anew after signing in.
 */
const PAGES = { search, compare, registry, edit: editor, import: importer, use, evaluation };
const NAMED = { compare: "search", edit: "registry", import: "registry" };

const main = document.getElementById("main");
let shown = null;

/** The page's name and its parameters from the hash. */
function parseAddress() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { name: Object.hasOwn(PAGES, name) ? name : "search", params: new URLSearchParams(query) };
}

let current = location.hash;

async function route() {
  if (signInByLink()) showSignButton(true); // also in a tab that shows the console already
  const address = location.hash;
  const { name, params } = parseAddress();
  const page = PAGES[name];
  const before = current;
  if (shown !== null && shown !== page && shown.close?.() === false) return void stay(before);
  current = address;
  for (const link of document.querySelectorAll("nav [data-page]")) {
    if (link.dataset.page === (NAMED[name] ?? name)) link.setAttribute("aria-current", "page");
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
      if (moved && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
      if (moved) scrollTo(0, 0);
    }
    if (location.hash === address) main.dataset.shown = address; // rendering is complete; tests wait for this
  } catch (error) {
    if (error.name === "AbortError") return;
    showError(error);
  }
}

/** Restore the address of the current page, which has unsaved changes. */
function stay(address) {
  current = address;
  history.replaceState(null, "", address || location.pathname);
}

function showError(error) {
  const message = error.status === undefined ? `Internal error of the console: ${error.message}` : error.message;
  fill(main, h("div", { class: "notice bad", role: "alert" }, h("p", {}, message), retryButton()));
  shown = null;
  main.dataset.shown = location.hash;
  say(message);
  if (error.status === undefined) console.error(error);
}

function retryButton() {
  return h("button", { type: "button", onclick: () => route() }, "Try again");
}

async function toggleSignIn() {
  if (token.get()) signOut();
  else if (!(await signIn())) return;
  clearAnswer();
  showSignButton(true);
  if (token.get() && shown?.hasInput) return; // what is typed stays, and can be sent now
  shown = null;
  await route();
}

const button = document.getElementById("sign");

function showSignButton(isNeeded) {
  button.hidden = !(isNeeded || token.get());
  button.textContent = token.get() ? "Sign out" : "Sign in";
}

button.addEventListener("click", toggleSignIn);
onRefusal(() => {
  token.set(null);
  showSignButton(true);
});
theme(document.getElementById("theme"));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address is not a page
  main.focus();
});
keys.listen(() => shown?.keys ?? {});
addEventListener("hashchange", route);
const problem = await finishSignIn();
showSignButton(Boolean(problem));
await route();
if (problem) main.prepend(h("p", { class: "notice bad", role: "alert" }, problem));
