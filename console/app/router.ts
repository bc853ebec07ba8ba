// Moves between pages by the history of the browser. Knows no page.
import { RANGE_PARAMETERS } from "../health/ranges.ts";
import { Store } from "./store.ts";

const ROOT = "/dashboard";

/** Moves about in a window. */
export class Router {
  readonly place: Store<Place>;
  readonly #root: string;
  readonly #window: Window;

  /** `base` is the path of the service, with a trailing slash. */
  constructor(window: Window, base: string) {
    this.#window = window;
    this.#root = `${base.replace(/\/$/, "")}${ROOT}`;
    this.place = new Store(this.#read());
    window.addEventListener("popstate", () => this.place.set(this.#read()));
  }

  /**
   * Goes to a path with its query, as `/requests?chain=base`. The range of time that is shown stays
   * unless the target has one.
   */
  go(target: string): void {
    const to = withRange(target, this.place.get().query);
    this.#window.history.pushState(null, "", this.href(to));
    this.place.set(this.#read());
    this.#window.scrollTo(0, 0);
  }

  /** Changes parameters of the query without a new entry in the history; null = removed. */
  setQuery(changes: Readonly<Record<string, string | null>>): void {
    const { path, query } = this.place.get();
    const target = `${this.href(path)}${queryText({ ...query, ...changes })}`;
    this.#window.history.replaceState(null, "", target);
    this.place.set(this.#read());
  }

  /** The address of a target, for `href`. */
  href(target: string): string {
    return target === "/" ? this.#root : `${this.#root}${target}`;
  }

  #read(): Place {
    const { pathname, search } = this.#window.location;
    return placeOf(pathname, search, this.#root);
  }
}

/** Where the reader is. */
export interface Place {
  /** Begins with a slash; "/" = the overview. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

/** The place at an address of the browser. */
export function placeOf(pathname: string, search: string, root: string): Place {
  const rest = pathname.startsWith(root) ? pathname.slice(root.length) : "";
  const path = rest.replace(/\/+$/, "");
  const query = Object.fromEntries(new URLSearchParams(search));
  return { path: path === "" ? "/" : path, query };
}

/** A target with the range of time of another place, if it has none of its own. */
export function withRange(target: string, query: Place["query"]): string {
  const [path = "", own = ""] = target.split("?");
  const given = Object.fromEntries(new URLSearchParams(own));
  if (RANGE_PARAMETERS.some((name) => given[name] !== undefined)) return target;
  const range = RANGE_PARAMETERS.map((name) => [name, query[name] ?? ""] as const);
  return `${path}${queryText({ ...given, ...Object.fromEntries(range) })}`;
}

/** A query as text, with its question mark; parameters that are null or empty are left out. */
export function queryText(query: Readonly<Record<string, unknown>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value != null && value !== "") params.set(name, String(value));
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

/** Where to sign in, with the way back to a place. */
export function signInPath({ path, query }: Place): string {
  const isStart = path === "/" || path === SIGN_IN;
  return isStart ? SIGN_IN : `${SIGN_IN}${queryText({ next: `${path}${queryText(query)}` })}`;
}

/** A place of this console from the query of the sign-in page; null = it names none. */
export function placeAfterSignIn(next: string): string | null {
  const isPlace = /^\/(?!\/)[^\\\p{Cc}]*$/u.test(next) && !next.includes("/..");
  return isPlace && next.length <= MAX_NEXT_CHARS && !next.startsWith(SIGN_IN) ? next : null;
}

const SIGN_IN = "/sign-in";
const MAX_NEXT_CHARS = 2_000;

/** The values of a pattern as `/chain/:profile/:chain` at a path; null = it does not match. */
export function matchPath(pattern: string, path: string): Readonly<Record<string, string>> | null {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  const values: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) {
      const decoded = decode(value);
      if (decoded === null || decoded === "") return null;
      values[part.slice(1)] = decoded;
    } else if (part !== value) return null;
  }
  return values;
}

/** A path from its parts, each escaped. */
export function pathTo(...parts: readonly string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
