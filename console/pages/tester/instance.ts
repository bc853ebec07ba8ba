// What `/agent.json` says of chains, profiles and strategies, as far as the tester needs it. Pure.
import { listIn, memberOf, textIn } from "../../api/json.ts";

/** Where calls can go. */
export interface Instance {
  readonly chains: readonly { readonly name: string; readonly title: string }[];
  readonly strategies: readonly string[];
  readonly profiles: readonly string[];
  /** Whether calls without a key are served. */
  readonly keyless: boolean;
}

/** Reads it; what is not there is empty. */
export function readInstance(document: unknown): Instance {
  return {
    chains: listIn(memberOf(document, "chains")).flatMap((chain) => {
      const name = memberOf(chain, "name");
      const title = memberOf(chain, "title");
      return typeof name === "string" ? [{ name, title: textIn(title) || name }] : [];
    }),
    strategies: listIn(memberOf(document, "strategies")).filter((name) => typeof name === "string"),
    profiles: listIn(memberOf(document, "profiles")).flatMap((profile) => {
      const slug = memberOf(profile, "slug");
      return typeof slug === "string" ? [slug] : [];
    }),
    keyless: memberOf(memberOf(document, "features"), "keyless_rpc") === true,
  };
}
