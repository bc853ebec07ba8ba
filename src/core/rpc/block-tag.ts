// The table of block tags: the names that a block parameter may hold in place of a number, and what
// each one says about the block.

/** Tags that not every provider serves. What a provider refuses is learned by tag. */
export const OPTIONAL_TAGS = ["pending", "safe", "finalized"] as const;

/** One of the tags that not every provider serves. */
export type OptionalTag = (typeof OPTIONAL_TAGS)[number];

/** What a tag says about the block. `none`: a block near the head, which every provider serves. */
export type TaggedBlock =
  | { readonly kind: "none" }
  | { readonly kind: "earliest" }
  | { readonly kind: "tag"; readonly tag: OptionalTag };

/** Every block tag by name. */
export const BLOCK_TAGS: ReadonlyMap<string, TaggedBlock> = new Map<string, TaggedBlock>([
  ["latest", { kind: "none" }],
  ["earliest", { kind: "earliest" }],
  ...OPTIONAL_TAGS.map((tag): [string, TaggedBlock] => [tag, { kind: "tag", tag }]),
]);
