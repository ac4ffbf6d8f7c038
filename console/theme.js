// Light, dark, or what the system says.

const KEPT = "mats.theme";
const THEMES = ["system", "light", "dark"];

function kept() {
  const theme = localStorage.getItem(KEPT);
  return THEMES.includes(theme) ? theme : "system";
}

function set(button, theme) {
  document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}

/** Make a button go round the themes; the choice is kept. */
export function theme(button) {
  set(button, kept());
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(kept()) + 1) % THEMES.length];
    localStorage.setItem(KEPT, next);
    set(button, next);
  });
}
