// A reader of the live feed: collects its events as they come.
import { request } from "node:http";
import { until } from "../fakes/service-fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into events of any shape
type Json = any;

/** A stream of events that is read. */
export interface EventReader {
  /** Events by type, as they came. */
  readonly events: { readonly type: string; readonly id: string | null; readonly data: Json }[];
  readonly status: number;
  /** Resolves with the first event of a type that passes. */
  next(type: string, passes?: (data: Json) => boolean): Promise<Json>;
  leave(): void;
}

/** Reads the feed at a URL, on a connection of its own, until it ends or is left. */
export function watchEvents(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<EventReader> {
  const events: EventReader["events"] = [];
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
          const fields = text
            .slice(0, end)
            .split("\n")
            .map((line) => line.split(/: (.*)/s));
          text = text.slice(end + 2);
          const of = (name: string) => fields.find(([field]) => field === name)?.[1] ?? null;
          const type = of("event");
          if (type !== null)
            events.push({ type, id: of("id"), data: JSON.parse(of("data") ?? "") });
        }
      });
      resolve({
        events,
        status: response.statusCode ?? 0,
        async next(type, passes = () => true) {
          const found = await until(`an event ${type}`, () =>
            events.find((event) => event.type === type && passes(event.data)),
          );
          return found.data;
        },
        leave: () => sent.destroy(),
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}
