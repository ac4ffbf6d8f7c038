/** Milliseconds from following a link until the page has been painted. */
async ([hash]) => {
  const began = performance.now();
  location.hash = hash;
  const main = document.getElementById("main");
  while (main.dataset.shown !== location.hash) {
    if (performance.now() - began > 30_000) throw new Error(`${hash} does not come`);
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done));
  return performance.now() - began;
}
