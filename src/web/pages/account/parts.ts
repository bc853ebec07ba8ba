// What pages for people are made with, and what is known of who looks at one.
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import type { HandlerParts } from "../../api/parts.ts";

/** What the pages are made with. */
export interface AccountPageParts
  extends Pick<HandlerParts, "store" | "runtime" | "changes" | "creations"> {
  readonly settings: Pick<HandlerParts["settings"], "tariff" | "maxKeys">;
  /** Secrets that open nothing, by address. */
  readonly misses: AddressLimit;
}

/** Who looks at a page. */
export interface Visitor {
  /** IP address. */
  readonly address: string;
}
