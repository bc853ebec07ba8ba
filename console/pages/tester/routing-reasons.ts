// Why a call went where it went, in sentences, from the evidence that came with its answer. Pure.

import { listIn, memberOf, textIn } from "../../api/json.ts";
import { textList } from "../../format/text.ts";

/** The evidence in sentences. */
export function reasonsOf(meta: unknown, isPinned: boolean): readonly string[] {
  if (meta === null) return ["The service refused the call before it was routed."];
  const text = (name: string): string => textIn(memberOf(meta, name));
  const provider = textIn(memberOf(memberOf(meta, "selected_provider"), "id"));
  const candidates = listIn(memberOf(meta, "candidate_providers")).map(String);
  const attempts = listIn(memberOf(meta, "attempts"));
  const failed = attempts.filter((attempt) => memberOf(attempt, "outcome") === "error");
  const source = SOURCES[text("source")];
  const place = candidates.indexOf(provider) + 1;
  const chosen = isPinned
    ? `The call is pinned to ${provider}.`
    : `${provider} was number ${place} of ${candidates.length} by ${text("strategy")}.`;
  return [
    ...(source === undefined ? [] : [source]),
    ...(provider === "" ? ["No provider's answer."] : []),
    ...(place > 0 && source === undefined ? [chosen] : []),
    ...(candidates.length > 1 ? [`In order: ${candidates.join(", ")}.`] : []),
    ...failed.map((attempt) => failureOf(attempt, provider)),
    ...(memberOf(meta, "lag_waived") === true ? ["Providers that lag were asked too."] : []),
    ...(memberOf(meta, "panic") === true ? ["Every circuit was open."] : []),
  ];
}

/** An attempt with an error; one that was passed on to the caller is an answer. */
function failureOf(attempt: unknown, selected: string): string {
  const of = (name: string): string => String(memberOf(attempt, name) ?? "");
  const code = memberOf(attempt, "code");
  const facts = [of("category").replaceAll("_", " "), code != null && `code ${code}`];
  const verb = of("provider") === selected ? "answered with an error" : "failed";
  return `${of("provider")} ${verb}: ${textList(facts)}.`;
}

/** Where an answer came from, if no provider was asked for this very call. */
const SOURCES: Readonly<Record<string, string>> = {
  shared: "The answer is that of an equal call.",
  cache: "The answer was kept from an earlier call.",
  merged: "The answer was joined from parts, of several providers.",
  heads: "The providers told it with their newest blocks.",
  accepted: "A provider has accepted this transaction before.",
  local: "The service knows this itself.",
};
