// The theme: light, dark, or the system's.

const KEY = "mats.theme";
const THEMES = ["system", "light", "dark"];

function storedTheme() {
  const theme = localStorage.getItem(KEY);
  return THEMES.includes(theme) ? theme : "system";
}

function set(button, theme) {
  document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}

/** Make a button cycle through the themes; the choice is stored. */
export function theme(button) {
  set(button, storedTheme());
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(storedTheme()) + 1) % THEMES.length];
    localStorage.setItem(KEY, next);
    set(button, next);
  });
}
