// Texts put together.

/** Facts as one text; those that are empty, null or false say nothing. */
export function textList(
  facts: readonly (string | false | null | undefined)[],
  between = ", ",
): string {
  return facts.filter(Boolean).join(between);
}

/** What a transport is called. */
export function transportName(transport: string): string {
  return transport === "ws" ? "WebSocket" : "HTTP";
}
