// Moves between pages by the history of the browser. Knows no page.
import { createStore, type Store } from "./store.ts";

/** Moves about. */
export interface Router {
  readonly place: Store<Place>;
  /** Goes to a path with its query, as `/requests?chain=base`. */
  go(target: string): void;
  /** Changes parameters of the query without a new entry in the history; null = removed. */
  setQuery(changes: Readonly<Record<string, string | null>>): void;
  /** The address of a target, for `href`. */
  href(target: string): string;
}

const ROOT = "/dashboard";

/** Creates the router of a window; `base` is the path of the service, with a trailing slash. */
export function createRouter(window: Window, base: string): Router {
  const root = `${base.replace(/\/$/, "")}${ROOT}`;
  const read = (): Place => placeOf(window.location.pathname, window.location.search, root);
  const place = createStore(read());
  window.addEventListener("popstate", () => place.set(read()));
  const href = (target: string): string => (target === "/" ? root : `${root}${target}`);
  return {
    place,
    href,
    go(target) {
      window.history.pushState(null, "", href(target));
      place.set(read());
      window.scrollTo(0, 0);
    },
    setQuery(changes) {
      const current = place.get();
      const search = queryText({ ...current.query, ...changes });
      window.history.replaceState(null, "", `${href(current.path)}${search}`);
      place.set(read());
    },
  };
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

/** A query as text, with its question mark; parameters that are null or empty are left out. */
export function queryText(query: Readonly<Record<string, string | null>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== "") params.set(name, value);
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
