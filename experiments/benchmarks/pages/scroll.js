/** Milliseconds between frames while the list is scrolled to so many rows. */
async (rows) => {
  const gaps = [], began = performance.now();
  let last = await new Promise(requestAnimationFrame);
  while (document.querySelectorAll(".rows > tr").length < rows) {
    if (last - began > 60_000) throw new Error("the list does not grow");
    scrollBy(0, 400);
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}
