// The services that account pages are built from, and the visitor of a page.
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import type { HandlerParts } from "../../api/parts.ts";

export interface AccountPageParts
  extends Pick<HandlerParts, "store" | "runtime" | "changes" | "creations"> {
  readonly settings: Pick<HandlerParts["settings"], "tariff" | "maxKeys">;
  /** Limits invalid secrets by address. */
  readonly misses: AddressLimit;
}

/** The visitor of a page. */
export interface Visitor {
  /** IP address. */
  readonly address: string;
}
