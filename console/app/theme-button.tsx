// Changes between light and dark; until it is used the browser's own setting holds.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "../components/icons.tsx";

const KEY = "svc-theme";

/** Applies the theme that was chosen earlier. */
export function applyTheme(): void {
  const chosen = readTheme();
  if (chosen !== null) document.documentElement.dataset["theme"] = chosen;
}

/** A button that changes the theme. */
export function ThemeButton(): JSX.Element {
  const [theme, setTheme] = useState(currentTheme());
  const other = theme === "dark" ? "light" : "dark";
  const change = (): void => {
    document.documentElement.dataset["theme"] = other;
    setTheme(other);
    storeTheme(other);
  };
  return (
    <button
      type="button"
      class="button button-icon button-plain"
      aria-label={`Change to the ${other} theme`}
      title={`Change to the ${other} theme`}
      onClick={change}
    >
      <Icon name="sun" />
    </button>
  );
}

function currentTheme(): "light" | "dark" {
  const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return readTheme() ?? system;
}

/** Storage may be switched off in a browser: then nothing is remembered. */
function readTheme(): "light" | "dark" | null {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null;
  }
}

function storeTheme(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds for this visit.
  }
}
