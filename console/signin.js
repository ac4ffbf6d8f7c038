// Sign in by pasting a token, or by an address that holds one. It is stored for the lifetime of the tab.

import { SIGN_IN, ask, token } from "./api.js";
import { say } from "./dom.js";

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]); // elsewhere a link could sign one in as somebody else

/** Delete the token. */
export function signOut() {
  token.set(null);
  say("Signed out");
}

/** Take the token out of an address that `mats serve` has printed; true if there was one. */
export function signInByLink() {
  const linked = LOOPBACK.has(location.hostname) && /^#token=([\w-]+)$/.exec(location.hash);
  if (!linked) return false;
  token.set(linked[1]);
  history.replaceState(null, "", location.pathname);
  return true;
}

/** Why the service does not know the token; empty if it does. Reading may need none, so a preview is asked for. */
async function refusal() {
  try {
    await ask("registry/preview", { method: "POST", body: { namespace: "mats", name: "sign-in", kind: "tool" } });
  } catch (error) {
    if (error.status === 401) return error.message.replace(SIGN_IN, "").replace(/: send (.*) as Authorization: Bearer/, ": paste $1");
  }
  return "";
}

/** Ask for a token in the dialog of the page; whether one was given. */
export function signIn(problem = "") {
  const dialog = document.getElementById("sign-in");
  const field = dialog.querySelector("input");
  dialog.querySelector("[role=alert]").textContent = problem;
  dialog.returnValue = field.value = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", async () => {
    const given = dialog.returnValue === "in" ? field.value.trim().replace(/^Bearer\s+/i, "") : "";
    if (!given) return resolve(false);
    token.set(given);
    const refused = await refusal();
    if (refused) token.set(null);
    resolve(refused ? signIn(refused) : true);
  }, { once: true }));
}
