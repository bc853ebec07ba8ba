// The source of the answer to a call, as a value. Billing, evidence and metrics read it.
import type { Provider } from "../provider/profile.ts";

/** Where an answer came from. */
export type AnswerSource =
  /** A provider was asked for this very call, and this is its result or error. */
  | { readonly kind: "provider"; readonly provider: Provider }
  /** A provider's answer that was kept since an earlier call. */
  | { readonly kind: "cache"; readonly provider: Provider }
  /** Parts of several answers, joined here. */
  | { readonly kind: "merged"; readonly providers: readonly Provider[] }
  /**
   * A provider's answer to another call or subscription: shared with a call in flight, or served
   * from a filter. Null = it is no longer known which provider.
   */
  | { readonly kind: "shared"; readonly provider: Provider | null }
  /** What the providers told of their heads. */
  | { readonly kind: "heads" }
  /** A transaction as its caller handed it in: a provider accepted it, and none finds it. */
  | { readonly kind: "accepted" }
  /** Of the configuration. */
  | { readonly kind: "local" }
  /** Providers refused the range of the call: there is no answer, and the caller asked too much. */
  | { readonly kind: "refused" }
  /** There is no answer: the call was refused, or no provider answered. */
  | { readonly kind: "none" };

/** What billing reads of a source. */
export type SourceKind = Pick<AnswerSource, "kind">;

/** There is no answer. */
export const NO_SOURCE: AnswerSource = { kind: "none" };
/** A range that providers refused. */
export const REFUSED_SOURCE: AnswerSource = { kind: "refused" };
/** What the providers told of their heads. */
export const HEADS_SOURCE: AnswerSource = { kind: "heads" };
/** A transaction that was accepted. */
export const ACCEPTED_SOURCE: AnswerSource = { kind: "accepted" };
/** Of the configuration. */
export const LOCAL_SOURCE: AnswerSource = { kind: "local" };
/** A filter of ours, or a subscription that was there already. */
export const SHARED_SOURCE: AnswerSource = { kind: "shared", provider: null };

/** The one provider whose answer it is; null = there is none, or several. */
export function providerOf(source: AnswerSource): Provider | null {
  return "provider" in source ? source.provider : null;
}
