// The view of a caller that wants none: tags go to providers as they were written.

import { CallerView, SeenBlocks } from "../../src/web/rpc/caller-view.ts";

/** What a request says that wishes nothing. */
export const NO_WISHES = { consistency: null, seen: null };

/** A view as `consistency: off` gives it. */
export function viewOff(): CallerView {
  const marks = new SeenBlocks();
  return new CallerView({ wishes: NO_WISHES, key: null, usual: () => "off", marks: () => marks });
}
