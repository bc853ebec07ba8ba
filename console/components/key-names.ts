// The names of keys, for pages that are told their ids.

import { useMemo } from "preact/hooks";
import type { AnswerOf } from "../api/contract-types.ts";
import { useResource } from "../api/resource.ts";
import { useApp, useStore } from "../app/app.ts";

const KEYS_MS = 60_000;

/** The names of keys, or else their prefixes, by id. */
export type KeyNames = ReadonlyMap<string, string>;

/** Keys that were used in the last day; without accounts there are none. */
export function useKeyNames(): KeyNames {
  const { client, session } = useApp();
  const isHosted = useStore(session.state)?.instance.hosted === true;
  const used = useResource<Pick<AnswerOf<"GET /api/v1/operator/usage">, "by_key">>(
    `used keys ${isHosted}`,
    KEYS_MS,
    async (signal) => {
      if (!isHosted) return { kind: "ok", body: { by_key: [] } };
      return client.call("GET /api/v1/operator/usage", { query: { hours: 24 } }, { signal });
    },
  );
  return useMemo(() => {
    const keys = used.data?.by_key ?? [];
    return new Map(keys.map((key) => [key.key_id, key.name || `${key.key_prefix}…`]));
  }, [used.data]);
}
