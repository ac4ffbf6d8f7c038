// A page of the registry where this service has none.

import { readOnlyReason } from "./api.js";
import { h } from "./dom.js";

/** The page of a service in AWS, or for a token that only reads; `command` shows the same on the command line. */
export function notHere(title, command) {
  return [h("h1", {}, title), h("p", { class: "notice" }, readOnlyReason() ? `Nothing to see here: ${readOnlyReason()}.` : ["This service has no registry of its own. Over the tables in AWS, see the dashboard and ", h("code", {}, command), "."])];
}
