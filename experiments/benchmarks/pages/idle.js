/** Wait until the service has no waiting changes. */
async () => {
  while ((await (await fetch("registry")).json()).changes.waiting) await new Promise((done) => setTimeout(done, 250));
}
