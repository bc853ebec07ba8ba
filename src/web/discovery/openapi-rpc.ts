// JSON-RPC over HTTP as OpenAPI: one operation per main URL form, with the instance's chains and
// strategies as examples. Knows no JSON-RPC method.
import { CONSISTENCIES } from "../../core/provider/profile.ts";
import { STRATEGY_NAMES } from "../../core/routing/strategy.ts";
import { rpcError } from "../contract/instance.ts";
import { rpcAnswers, rpcBody } from "../contract/rpc-schemas.ts";
import { type ErrorEntry, errorEntries } from "./errors.ts";
import { type DocumentFacts, SESSION_FORM, sellsCalls } from "./facts.ts";
import {
  type Components,
  type HeaderName,
  headersOf,
  type Refusals,
  refusalResponses,
  rpcSecurity,
  SEEN_EXAMPLE,
  text,
  UNBILLED,
} from "./openapi-parts.ts";
import { paymentInfo } from "./pay.ts";
import type { Json } from "./sections.ts";

interface RpcForm {
  readonly id: string;
  readonly path: string;
  readonly summary: string;
  /** What a payment buys: one call, or credit for the key; absent = it takes none. */
  readonly pays?: "call" | "fund_key";
}

const FORMS: readonly RpcForm[] = [
  {
    id: "rpcKeyed",
    path: "/rpc/k/{key}/{strategy}/{chain}",
    summary: "Call a chain with the key in the path",
    pays: "fund_key",
  },
  {
    id: "rpcSession",
    path: SESSION_FORM,
    summary: "Call a chain and pay for each call",
    pays: "call",
  },
  { id: "rpc", path: "/rpc/{chain}", summary: "Call a chain with the default strategy" },
  { id: "rpcStrategy", path: "/rpc/{strategy}/{chain}", summary: "Call a chain with a strategy" },
  {
    id: "rpcProvider",
    path: "/rpc/provider/{provider_id}/{chain}",
    summary: "Call one provider and no other",
  },
  {
    id: "rpcProfile",
    path: "/rpc/profile/{slug}/{strategy}/{chain}",
    summary: "Call a chain within a profile",
  },
];

/** The ids of JSON-RPC operations. */
export const RPC_OPERATIONS: readonly string[] = FORMS.map(({ id }) => id);

/** The path items of JSON-RPC. */
export function rpcPaths(facts: DocumentFacts, components: Components): Json {
  const { hosted } = facts;
  const shared = sharedParts(hosted !== null, components);
  const forms = FORMS.filter(
    ({ pays }) =>
      pays === undefined || (hosted !== null && (pays !== "call" || sellsCalls(hosted.payments))),
  );
  return Object.fromEntries(
    forms.map((form) => [form.path, { post: { ...operationOf(form, facts), ...shared } }]),
  );
}

/** Whether a code has an HTTP status of its own for a POST on an RPC path. */
function isOverHttp({ surface, status, code }: ErrorEntry): boolean {
  return (
    surface === "json_rpc" &&
    status !== 200 &&
    code !== "method_not_allowed" &&
    code !== "upgrade_required"
  );
}

function sharedParts(hosted: boolean, components: Components): Json {
  const body = { schema: components.schemas.of(rpcBody) };
  const answer = { schema: components.schemas.of(rpcAnswers) };
  components.schemas.of(rpcError);
  const entries = errorEntries(hosted).filter(
    (entry) => isOverHttp(entry) && (hosted || entry.code !== "rate_limit_exceeded"),
  );
  return {
    requestBody: { required: true, content: { "application/json": body } },
    responses: {
      "200": components.keep("Rpc_200", {
        description: "The answer. A provider's error passes unchanged, also with status 200.",
        headers: headersOf([...UNBILLED, ...(hosted ? BILLED : [])]),
        content: { "application/json": answer },
      }),
      "204": { description: "Only notifications were sent.", headers: headersOf(["RequestId"]) },
      ...refusalResponses(entries, { ...REFUSALS, headers: hosted ? LIMITS : [] }, components),
    },
  };
}

const LIMITS = ["RateLimitPolicy", "RateLimit"] as const;
const BILLED: readonly HeaderName[] = [
  "Access",
  "Fallback",
  "Cu",
  "Usd",
  "BalanceUsd",
  ...LIMITS,
  "Receipt",
  "PaymentResponse",
];

const REFUSALS: Omit<Refusals, "headers"> = {
  prefix: "Rpc",
  envelope: "RpcError",
  codeAt: ["error", "data", "code"],
  example: ({ code, rpcCode, meaning, nextAction, retryable }) => {
    const data = {
      code,
      next_action: nextAction,
      retryable,
      ...(retryable ? { retry_after_ms: 1_000 } : {}),
    };
    return { jsonrpc: "2.0", id: null, error: { code: rpcCode, message: meaning, data } };
  },
};

function operationOf({ id, path, summary, pays }: RpcForm, facts: DocumentFacts): Json {
  const named = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name);
  const known = pathParameters(facts);
  const inPath = named.map((name) => ({
    name,
    in: "path",
    required: true,
    ...known[name],
  }));
  const info = pays === undefined ? null : paymentInfo(facts.hosted?.payments ?? null, pays);
  const byKey = pays === undefined ? rpcSecurity(facts.hosted) : [];
  return {
    operationId: id,
    tags: ["rpc"],
    summary,
    description: DESCRIPTIONS[pays ?? "none"],
    security: pays === "call" ? [{ mpp: [] }] : byKey,
    ...(info === null ? {} : { "x-payment-info": info }),
    parameters: [
      ...inPath,
      ...(named.includes("strategy") ? [] : [STRATEGY]),
      ...(named.includes("provider_id") ? [] : [PROVIDER]),
      META,
      CONSISTENCY,
      SEEN,
    ],
  };
}

const DESCRIPTION = "A JSON-RPC 2.0 call or a batch. The same path under `/ws` is a WebSocket.";
const DESCRIPTIONS = {
  none: DESCRIPTION,
  fund_key:
    `${DESCRIPTION} Security: the key in the path. Where payments are taken, a 402 ` +
    "`balance_exhausted` offers to fund the key: the same request with the payment is credited " +
    "and served.",
  call:
    "A JSON-RPC 2.0 call or a batch, over HTTP. Needs no key: every call is paid for from a " +
    "channel (MPP `tempo`/`session`), after it was answered. The challenge says what it costs.",
} as const;
/** An optional parameter of the query. */
const inQuery = (name: string, description: string, schema: Json = {}): Json => ({
  name,
  in: "query",
  required: false,
  ...text(description, schema),
});

const STRATEGY = inQuery(
  "strategy",
  "Strategy, where the path names none. The header `X-Svc-Strategy` does the same.",
  { enum: STRATEGY_NAMES },
);
const PROVIDER = inQuery(
  "provider",
  "Asks this provider and no other. The header `X-Svc-Provider` does the same.",
);
const META = inQuery(
  "include_meta",
  "Where to show how the call was routed: as `svc_meta` in the body, or in the header " +
    "`x-svc-meta`.",
  { enum: ["body", "headers"] },
);
const CONSISTENCY = inQuery(
  "consistency",
  "Which view of the chain the answers have: `tip` = one newest block for all providers; " +
    "`caller` = as well, none older than an answer before; `off` = as the provider sees it. The " +
    "header `X-Svc-Consistency` does the same. Default: as the key, the profile or the service says.",
  { enum: CONSISTENCIES },
);
const SEEN = inQuery(
  "seen",
  "The newest block that the caller has seen, as an answer gave it in `x-svc-seen`: no answer is " +
    "of an older one. The header `X-Svc-Seen` does the same.",
  { examples: [SEEN_EXAMPLE] },
);

/** The parameters of paths, by name. */
function pathParameters({ chains, profiles }: DocumentFacts): Readonly<Record<string, Json>> {
  const names = chains.map((chain) => chain.name);
  const all = `Name, alias or decimal id of a chain: ${names.join(", ")}.`;
  return {
    chain: text(all, { examples: names }),
    strategy: text("Routing strategy.", { enum: STRATEGY_NAMES }),
    slug: text("Slug of a profile.", { examples: profiles.map((profile) => profile.slug) }),
    key: text("The full RPC key, `svc_ak_…`."),
    provider_id: text("Id or alias of a provider."),
  };
}
