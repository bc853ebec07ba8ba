// How answers are kept, as a configuration says it.

/** Settings of the cache. */
export interface CacheSettings {
  /** Of all kept answers. */
  readonly maxBytes: number;
  /** Of the answers kept for one account with Custom profiles; 0 = none are. */
  readonly accountMaxBytes: number;
  /** True = no account is given what another one has asked for. */
  readonly byAccount: boolean;
  /** The longest life (ms) of answers to a method, by name; 0 = they are not kept. */
  readonly methods: ReadonlyMap<string, number>;
}
