// The real service with keys and payments: local payment chains, rails to them, and one scripted
// provider. Ends with the test or suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../../src/config/config.ts";
import type { PaymentSettings, RailSettings } from "../../src/payments/rails/rails.ts";
import { realRuntime } from "../../src/runtime.ts";
import { type PaymentChains, startPaymentChains } from "./payment-chains.ts";
import { configText, type Service, startService } from "./service.ts";
import { scriptedUpstream } from "./upstream.ts";

/** The operator's token of the service. */
export const OPERATOR_TOKEN = "operator-of-the-paid-service-0123456789";

/** A service that takes payments. */
export interface PaidService {
  readonly service: Service;
  readonly chains: PaymentChains;
  /** The audit of the books: what is wrong in them. */
  differences(): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

/**
 * Starts it with these rails; `waitMs` is how long a paying request waits for its chain. Accounts
 * have no free allowance.
 */
export async function startPaidService(
  railsOf: (chains: PaymentChains) => readonly RailSettings[],
  waitMs = 60_000,
): Promise<PaidService> {
  const [chains, upstream] = await Promise.all([startPaymentChains(), scriptedUpstream()]);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-paid-"));
  const text = configText(
    [{ id: "one", url: upstream.url }],
    {
      hosted: { enabled: true, operator_token: OPERATOR_TOKEN, free_cu_per_month: 0 },
      data_dir: dataDir,
    },
    {},
    "public",
  );
  const service = await startService(text, realRuntime, (config) =>
    withRails(config, { ...PAYMENTS, waitMs, rails: railsOf(chains) }),
  );
  await service.probed();
  return {
    service,
    chains,
    async differences() {
      const response = await fetch(`${service.url}/api/v1/operator/audit`, {
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      });
      return parseAudit(await response.json()).differences;
    },
    async close() {
      await service.close();
      await Promise.all([chains.close(), upstream.close()]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Ranges of purchases in tests. */
export const PAYMENTS = {
  minN: 100_000_000n,
  maxN: 100_000_000_000n,
  customDayN: 1_300_000_000n,
  maxCustomDays: 30,
  offerMs: 300_000,
};

/** Rails of a local chain can be written in no file. */
export function withRails(config: Config, payments: PaymentSettings): Config {
  return config.hosted === null ? config : { ...config, hosted: { ...config.hosted, payments } };
}

function parseAudit(json: unknown): { readonly differences: readonly unknown[] } {
  return json as { readonly differences: readonly unknown[] };
}
