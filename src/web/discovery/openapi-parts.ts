// Shared parts of OpenAPI operations: headers, security schemes, and refusals by status. Knows no
// operation.
import type { PurposeKind } from "../../core/billing/payment.ts";
import { RANGE_RULE } from "../../core/billing/price.ts";
import type { Auth } from "../contract/operation.ts";
import { byStatus, type ErrorEntry } from "./errors.ts";
import type { DocumentFacts, HostedFacts } from "./facts.ts";
import { COMPONENTS, Schemas } from "./schema-text.ts";
import type { Json } from "./sections.ts";

/** A text with its meaning. */
export const text = (description: string, more: Json = {}): Json => ({
  description,
  schema: { type: "string", ...more },
});

/** A mark of a block, as in `X-Svc-Seen`. */
export const SEEN_EXAMPLE =
  "21000000-0x6f3a1c0e9b7d52c48f1e6a0d3b95c7e2148a6f0c9d3b5e7a1f2c4d6e8b0a9c7d";

/** Response headers by component name. */
const HEADERS = {
  RequestId: ["x-svc-request-id", text("Unique per request; name it when you report something.")],
  RetryAfter: [
    "Retry-After",
    {
      description: "Whole seconds after which the same request may be sent again.",
      schema: { type: "integer", minimum: 1 },
    },
  ],
  Meta: [
    "x-svc-meta",
    text(
      "With `include_meta=headers`: `svc_meta` as JSON in base64url without padding. Left out " +
        "above 4096 bytes.",
    ),
  ],
  Node: [
    "x-svc-node",
    text("With `include_meta`: the node that served the call, where several serve together."),
  ],
  Cache: [
    "x-svc-cache",
    text("How a call met the cache; only of methods whose answers are kept.", {
      enum: ["hit", "miss", "bypass"],
    }),
  ],
  Seen: [
    "x-svc-seen",
    text(
      "The newest block that the caller has seen, with this answer; of requests that carry one, " +
        "and with `consistency=caller`. Send it back as `X-Svc-Seen`.",
      { examples: [SEEN_EXAMPLE] },
    ),
  ],
  Access: [
    "x-svc-access",
    text("How the call was served.", { enum: ["premium", "public", "custom"] }),
  ],
  Fallback: [
    "x-svc-fallback",
    text("Only when it was served elsewhere than asked for.", {
      enum: ["payment", "free", "profile"],
    }),
  ],
  Cu: [
    "x-svc-cu",
    {
      description:
        "Compute units of the request; of an answer from the cache those that it cost. Keys of " +
        "accounts get it where a call cost more than the plain price of its method. Of an answer " +
        "that is still being sent it is what is held: usage tells what was charged. Ranges of " +
        `blocks: ${RANGE_RULE}. Example: \`eth_getLogs\` over 1000 blocks, of which a provider ` +
        "accepts 100, costs ten times its price (GET /api/v1/agent/pricing).",
      schema: { type: "integer", minimum: 0 },
    },
  ],
  Usd: [
    "x-svc-usd",
    text("What was charged, in US dollars; `0` when nothing was. Anonymous keys only."),
  ],
  BalanceUsd: ["x-svc-balance-usd", text("Estimated balance after the charge, in US dollars.")],
  RateLimitPolicy: [
    "RateLimit-Policy",
    text("The bucket that binds: `q` requests in `w` seconds.", {
      examples: ['"managed";q=200;w=2'],
    }),
  ],
  RateLimit: [
    "RateLimit",
    text("What the bucket still lets through: `r` requests; full again in `t` seconds.", {
      examples: ['"managed";r=199;t=1'],
    }),
  ],
  Challenge: [
    "WWW-Authenticate",
    text("`Payment …`: an MPP challenge, one line for each offer. Sign one."),
  ],
  PaymentRequired: [
    "PAYMENT-REQUIRED",
    text("The offers of x402 v2, as JSON in base64. Only where there are any."),
  ],
  Receipt: ["Payment-Receipt", text("MPP's receipt, where the request was paid for by MPP.")],
  PaymentResponse: [
    "PAYMENT-RESPONSE",
    text("x402's settlement, where the request was paid for by x402."),
  ],
} as const satisfies Readonly<Record<string, readonly [string, Json]>>;

/** Component name of a response header. */
export type HeaderName = keyof typeof HEADERS;

/** The `headers` of a response. */
export function headersOf(names: readonly HeaderName[]): Json {
  return Object.fromEntries(
    names.map((name) => [HEADERS[name][0], { $ref: `#/components/headers/${name}` }]),
  );
}

/** Headers of answers to calls on instances without keys. */
export const UNBILLED: readonly HeaderName[] = ["RequestId", "Meta", "Node", "Cache", "Seen"];

/** The response headers of an instance as components. */
export function headerComponents(hosted: boolean): Json {
  const shown: readonly string[] = [...UNBILLED, "RetryAfter"];
  const names = Object.entries(HEADERS).filter(([name]) => hosted || shown.includes(name));
  return Object.fromEntries(names.map(([name, [, header]]) => [name, header]));
}

const bearer = (description: string): Json => ({ type: "http", scheme: "bearer", description });

/** The security schemes of an instance as components. */
export function securitySchemes({
  hosted,
  operator,
}: Pick<DocumentFacts, "hosted" | "operator">): Json {
  return {
    ...(hosted === null ? {} : HOSTED_SCHEMES),
    ...(operator ? { operatorToken: bearer("The operator token of the instance.") } : {}),
  };
}

const HOSTED_SCHEMES: Json = {
  apiKey: {
    type: "apiKey",
    in: "query",
    name: "key",
    description:
      "The RPC key (`svc_ak_…`) as it was sent before keys stood in the path. Prefer " +
      "`/rpc/k/{key}/…`, whose path carries it.",
  },
  rpcKey: bearer("The RPC key (`svc_ak_…`)."),
  dashboardKey: {
    type: "apiKey",
    in: "header",
    name: "x-svc-api-key",
    description: "The RPC key (`svc_ak_…`), in a header of its own.",
  },
  managementToken: bearer(
    "The management token (`svc_mt_…`) that `createKey` answers when it creates an account.",
  ),
  mpp: {
    type: "http",
    scheme: "Payment",
    description:
      "An MPP credential that answers a challenge of a 402. Beside another `Authorization` " +
      "it stands in `Payment-Authorization`, or in one list with it.",
  },
  paymentSignature: {
    type: "apiKey",
    in: "header",
    name: "PAYMENT-SIGNATURE",
    description: "A signed payment: x402 v2, or an MPP credential.",
  },
  connectionToken: bearer(
    "The token of a connection that was asked for with `POST /api/v1/connections`, `svc_ct_…`.",
  ),
};

/** The ways to send an RPC key other than in the path. */
const RPC_KEY: readonly Json[] = [{ rpcKey: [] }, { dashboardKey: [] }];

/** The `security` of RPC paths without a key in the path. */
export function rpcSecurity(hosted: HostedFacts | null): readonly Json[] {
  if (hosted === null) return [];
  return [...(hosted.keyless ? [{}] : []), ...RPC_KEY, { apiKey: [] }];
}

/**
 * The `security` of an operation. A key in the path is a parameter instead. A payment is an
 * additional requirement, except for creating keys, which also works without one.
 */
export function securityOf(auth: readonly Auth[], pays: PurposeKind | undefined): readonly Json[] {
  const others = auth.flatMap((way): readonly Json[] => SECURITY[way]);
  const paid =
    pays === undefined
      ? []
      : others.flatMap((other) => [
          { ...other, mpp: [] },
          { ...other, paymentSignature: [] },
        ]);
  const ways = pays === undefined || pays === "create_key" ? [...others, ...paid] : paid;
  return ways.every((scheme) => Object.keys(scheme).length === 0) ? [] : ways;
}

const SECURITY: Readonly<Record<Auth, readonly Json[]>> = {
  none: [{}],
  key_in_path: [{}],
  management_token: [{ managementToken: [] }],
  rpc_key: RPC_KEY,
  operator: [{ operatorToken: [] }],
  connection_token: [{ connectionToken: [] }],
};

/** Collects the components of a document. */
export class Components {
  readonly schemas = new Schemas();
  readonly responses: Record<string, Json> = {};

  /** Keeps a response of several operations under a name, and returns a reference to it. */
  keep(name: string, answer: Json): Json {
    this.responses[name] = answer;
    return { $ref: `#/components/responses/${name}` };
  }
}

/** How one API writes refusals. */
export interface Refusals {
  /** Prefix of the names of its responses. */
  readonly prefix: string;
  /** Name of the envelope's schema. */
  readonly envelope: string;
  /** Where the envelope has the code. */
  readonly codeAt: readonly string[];
  readonly example: (entry: ErrorEntry) => unknown;
  readonly headers: readonly HeaderName[];
}

/** Refusals as `responses` by status. */
export function refusalResponses(
  entries: readonly ErrorEntry[],
  how: Refusals,
  components: Components,
): Json {
  const answers = byStatus(entries).map(([status, some]): readonly [string, Json] => {
    const name = [how.prefix, String(status), ...some.map((entry) => entry.code)].join("_");
    return [String(status), components.keep(name, refusalResponse(some, how))];
  });
  return Object.fromEntries(answers);
}

const PAYMENT_REQUIRED = 402;

function refusalResponse(
  entries: readonly ErrorEntry[],
  { envelope, codeAt, example, headers }: Refusals,
): Json {
  const waits = entries.some((entry) => entry.retryable);
  const requiresPayment = entries.some((entry) => entry.status === PAYMENT_REQUIRED);
  const codes = codeAt.reduceRight<Json>(
    (inner, name) => ({ type: "object", properties: { [name]: inner } }),
    { enum: entries.map((entry) => entry.code) },
  );
  return {
    description: entries.map((entry) => `\`${entry.code}\`: ${entry.meaning}`).join(" "),
    headers: headersOf([
      "RequestId",
      ...(waits ? (["RetryAfter"] as const) : []),
      ...(requiresPayment ? (["Challenge", "PaymentRequired"] as const) : []),
      ...headers,
    ]),
    content: {
      "application/json": {
        schema: { allOf: [{ $ref: COMPONENTS + envelope }, codes] },
        examples: Object.fromEntries(
          entries.map((entry) => [entry.code, { value: example(entry) }]),
        ),
      },
    },
  };
}
