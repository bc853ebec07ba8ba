// The entry for `svc.yml` that says what a probe has found. What looks like a key is a reference.
import { stringify } from "yaml";
import type { Fields } from "../../core/fields.ts";
import { METHODS, methodOf, RESOURCES, type Resource } from "../../core/rpc/method.ts";
import { knownChain } from "../../presets/chains.ts";
import type { ProbeFindings } from "../../upstream/probe/probe.ts";
import { given, idOfUrl, section } from "../import/draft.ts";
import { Secrets } from "../import/secrets.ts";
import type { Probed } from "./probed.ts";
import { namespaceOf } from "./table.ts";

/** What `archival` says of a provider, beside its state. */
const ARCHIVED: readonly Resource[] = ["proofs", "traces"];

/** The text of the entry, with the chain that it belongs under; null = nothing was found. */
export function entryOf({ endpoint, result }: Probed): string | null {
  if (result.kind === "failed") return null;
  const { url, wsUrl } = endpoint;
  const id = idOfUrl(url ?? wsUrl ?? "", "provider");
  const secrets = new Secrets("none", "");
  const hasSocket = result.socket?.works === true && wsUrl !== null;
  const settings = given({
    id,
    url: url === null ? null : secrets.url(url, id, ""),
    ws_url: hasSocket ? secrets.url(wsUrl, id, "") : null,
    archival: isArchive(result) ? true : null,
    batch: result.batch === true ? {} : null,
    ...section("capabilities", {
      ...historyOf(result),
      ...unserved(result),
      ...section("limits", { max_block_range: rangeOf(result) }),
    }),
  });
  const chain = knownChain(String(result.chainId))?.chainName ?? `chain ${result.chainId}`;
  const variables = secrets.keys.map(({ name }) => `# ${name}: the key in the address\n`).join("");
  return `# Under the providers of ${chain}:\n${variables}${stringify([settings], { lineWidth: 0 })}`;
}

/** State, proofs and traces of any block, as far as they were seen. */
function isArchive({ oldest }: ProbeFindings): boolean {
  return oldest.state === 0 && ARCHIVED.every((resource) => (oldest[resource] ?? 0) === 0);
}

/**
 * How far back it has each kind of data, beside what `archival` says. As a window, since most nodes
 * drop old data as the chain goes on.
 */
function historyOf(found: ProbeFindings): Fields {
  const { oldest, head } = found;
  const isWhole = isArchive(found);
  const said = RESOURCES.map((resource) => {
    const block = oldest[resource];
    if (block === 0) return [resource, isWhole ? null : 0] as const;
    return [resource, block === null ? null : `last ${Math.max(1, head - block)}`] as const;
  });
  return Object.fromEntries(said);
}

function rangeOf({ logs }: ProbeFindings): number | null {
  return logs.isUnlimited ? null : logs.maxBlockRange;
}

/** Namespaces of which nothing is served as categories, where they are one; else the methods. */
function unserved({ methods }: ProbeFindings) {
  const refused = methods
    .filter(({ outcome }) => outcome === "refused")
    .map(({ method }) => method);
  const whole = ["debug", "trace", "txpool"].filter((namespace) => {
    const own = methods.filter(({ method }) => namespaceOf(method) === namespace);
    return own.length > 0 && own.every(({ outcome }) => outcome === "refused");
  });
  const single = refused.filter((method) => !whole.includes(namespaceOf(method)));
  const known = single.filter((method) => METHODS.includes(methodOf(method)));
  return {
    unsupported_categories: whole.length === 0 ? null : whole,
    unsupported_methods: known.length === 0 ? null : known,
  };
}
