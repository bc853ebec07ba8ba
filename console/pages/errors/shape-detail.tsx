// What an error of one shape opens to: where it came from, who saw it, its sample, the rule that
// would classify it, and its calls.
import type { ComponentChildren } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { queryText } from "../../app/router.ts";
import { Facts } from "../../components/card.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { Link, Name, Time } from "../../components/inline.tsx";
import type { KeyNames } from "../../components/key-names.ts";
import { count, DASH, textList } from "../../format/text.ts";

/** Errors alike; `hidden` = users got another answer. */
export type Shape = AnswerOf<"GET /api/v1/operator/errors">["seen"][number] & {
  readonly hidden: boolean;
};

/** Of two minutes. */
const LATE_STEPS = 5;

/** The providers that failed so, each once, whatever the chain. */
export function providerNames({ providers }: Shape): readonly string[] {
  return [...new Set(providers.flatMap(({ provider }) => provider ?? []))];
}

interface ShapeProps {
  readonly shape: Shape;
  readonly keys: KeyNames;
}

/** An open row. */
export function ShapeDetail({ shape, keys }: ShapeProps) {
  const { sample, behind, rule } = shape;
  return (
    <div class="stack">
      <Facts facts={factsOf(shape, keys)} />
      <Snippet text={sample ?? "No sample was kept."} what="the sample" />
      {behind?.sample == null ? null : (
        <>
          <p class="small muted">A provider had said before:</p>
          <Snippet text={behind.sample} what="the sample of the provider" />
        </>
      )}
      {rule === null ? null : (
        <>
          <p class="small muted">
            No rule knows this error. This entry under <code>error_rules</code> in the configuration
            classifies it; choose the category that fits.
          </p>
          <Snippet text={rule.yaml} what="the rule" />
        </>
      )}
    </div>
  );
}

function factsOf(shape: Shape, names: KeyNames): readonly (readonly [string, ComponentChildren])[] {
  const { behind, others, keys, users, more_keys: moreKeys } = shape;
  const anonymous = (users ?? 0) - keys.length - moreKeys;
  const providers = shape.providers.map(({ provider, chain, profile, count: n }) => {
    const name = provider ?? (profile === "custom" ? "of a user" : "none");
    const label = chain === "" ? name : `${name} on ${chain}, ${profile}`;
    return [label, callsOf(shape, { provider, chain, profile }), n] as const;
  });
  const methods = shape.methods.map(({ method, count: n }) => {
    return [method, callsOf(shape, { method }), n] as const;
  });
  const callers = keys.map(({ key_id: key, count: n }) => {
    return [names.get(key) ?? key, callsOf(shape, { key }), n] as const;
  });
  const further = [
    moreKeys > 0 && `and ${count(moreKeys)} more`,
    anonymous > 0 && `${count(anonymous)} without a key`,
    others.users > 0 && `${count(others.users)} errors of further users`,
  ];
  return [
    ["Error", errorText(shape)],
    ...(behind === null ? [] : [["Before it", errorText(behind)] as const]),
    ["Providers", countedList(providers, otherText(others.providers))],
    ["Methods", countedList(methods, otherText(others.methods))],
    ["Keys", countedList(callers, textList(further))],
    ["First seen", <Time key="first" at={shape.first_seen} />],
    ["Last seen", <Time key="last" at={shape.last_seen} />],
    ["Last hour", trendText(shape.trend)],
    ["Calls", link("Those that are still kept", callsOf(shape, {}))],
  ];
}

function otherText(n: number): string {
  return n === 0 ? "" : `${count(n)} of others`;
}

function link(name: string, to: string) {
  return (
    <Link to={to}>
      <Name text={name} />
    </Link>
  );
}

/** An error in words. */
export function errorText({
  category,
  code,
  http_status: status,
}: Shape["behind"] & object): string {
  const said = [code !== null && `code ${code}`, status !== null && `HTTP ${status}`];
  return textList([category.replaceAll("_", " "), ...said]);
}

/** The address of calls of a shape, by the filters of the page of requests. */
function callsOf(shape: Shape, filter: Readonly<Record<string, string | null>>): string {
  const { providers, methods, outcome, hidden } = shape;
  const chains = new Set(providers.map(({ chain }) => chain));
  const names = providerNames(shape);
  return `/requests${queryText({
    chain: chains.size === 1 ? [...chains][0] : null,
    provider: names.length === 1 ? names[0] : null,
    method: methods.length === 1 ? methods[0]?.method : null,
    ...(hidden ? { failovers: true } : { outcome }),
    ...filter,
  })}`;
}

/** Names with the addresses of their calls and how many there were. */
function countedList(rows: readonly (readonly [string, string, number])[], rest: string) {
  if (rows.length === 0) return rest || DASH;
  return (
    <ul>
      {rows.map(([name, to, n]) => (
        <li key={to}>
          {link(name, to)} <span class="muted">{count(n)}</span>
        </li>
      ))}
      {rest === "" ? null : <li class="muted">{rest}</li>}
    </ul>
  );
}

/** How many came in the last hour, and how many of them just now. */
function trendText(steps: readonly number[]): string {
  const sum = steps.reduce((total, n) => total + n, 0);
  const lately = steps.slice(-LATE_STEPS).reduce((total, n) => total + n, 0);
  return sum === 0 ? "none" : `${count(sum)}, of which ${count(lately)} in the last 10 minutes`;
}

/** Bars of the last hour. */
export function Trend({ steps }: { readonly steps: readonly number[] }) {
  const most = Math.max(1, ...steps);
  return (
    <svg
      class="trend"
      width={steps.length * 3}
      height="18"
      viewBox={`0 0 ${steps.length * 3} 18`}
      role="img"
      aria-label={`Last hour: ${trendText(steps)}`}
    >
      {steps.map((n, at) => {
        const height = n === 0 ? 1 : 2 + (16 * n) / most;
        return <rect key={at} x={at * 3} y={18 - height} width="2" height={height} />;
      })}
    </svg>
  );
}
