// The theme: that of the browser until one is chosen, which this browser remembers.
import { Store } from "./store.ts";

type ThemeName = "light" | "dark";

const KEY = "svc-theme";

/** Holds the theme. */
export class Theme {
  readonly store: Store<ThemeName>;

  constructor() {
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const chosen = readTheme();
    this.store = new Store(chosen ?? system);
    if (chosen !== null) this.#apply(chosen);
  }

  /** Changes to the other one. */
  change(): void {
    const other = this.store.get() === "dark" ? "light" : "dark";
    this.#apply(other);
    this.store.set(other);
    storeTheme(other);
  }

  #apply(theme: ThemeName): void {
    document.documentElement.style.colorScheme = theme;
  }
}

/** Storage may be switched off in a browser: then nothing is remembered. */
function readTheme(): ThemeName | null {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : null;
  } catch {
    return null;
  }
}

function storeTheme(theme: ThemeName): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds for this visit.
  }
}
