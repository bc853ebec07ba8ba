// Moves between pages by the history of the browser. Knows no page.
import { type Place, placeOf, queryText } from "./address.ts";
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
