// Light and dark. The page follows the system until a person chooses the other one. The choice is in the local storage of
// the browser, for all pages of this origin.

const THEME = "funcmcp theme";
const systemPrefersDark = matchMedia("(prefers-color-scheme: dark)");

/** Returns what a person has chosen before; null without a choice, and where the browser forbids the storage. */
function remembered(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a choice for the next visit. null forgets it. */
function remember(key, choice) {
  try {
    if (choice === null) localStorage.removeItem(key);
    else localStorage.setItem(key, choice);
  } catch {
    // The browser forbids the storage. The choice then lasts until the page is left.
  }
}

const systemTheme = () => (systemPrefersDark.matches ? "dark" : "light");
let chosenTheme = ["light", "dark"].find((theme) => theme === remembered(THEME)) ?? null;
let onThemeChange = () => {};
const theme = () => chosenTheme ?? systemTheme();

function showTheme() {
  document.documentElement.dataset.theme = theme();
  byId("dark").setAttribute("aria-pressed", String(theme() === "dark"));
  onThemeChange();
}

byId("dark").addEventListener("click", () => {
  const other = theme() === "dark" ? "light" : "dark";
  chosenTheme = other === systemTheme() ? null : other;
  remember(THEME, chosenTheme);
  showTheme();
});
systemPrefersDark.addEventListener("change", showTheme);
showTheme();
