// Moves between the pages of a list that the service gives by pages.
import { useState } from "preact/hooks";

/** The marks of the pages that were opened, and how to move between pages of the service. */
export function usePages() {
  const [pages, setPages] = useState<readonly string[]>([]);
  const after = pages.at(-1);
  return {
    /** Where the page begins; nothing for the first one. */
    begin: after === undefined ? {} : { after },
    toFirst: () => setPages([]),
    /** `next` = the mark of the next page; null = this is the last one. */
    moves: (next: string | null) => ({
      back: pages.length === 0 ? null : () => setPages(pages.slice(0, -1)),
      next: next === null ? null : () => setPages([...pages, next]),
    }),
  };
}
