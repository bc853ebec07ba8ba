// Polls a connection with its own token, as often as the service allows, until it is decided or
// nobody waits for it.
import { SERVICE_URL } from "../../api/client.ts";

/** What became of a connection. */
export interface PolledConnection {
  readonly status: string;
  /** In the first answer that says `approved`, and never again. */
  readonly managementToken: string | null;
}

const POLL_MS = 5_200;

/** Tells every answer; the returned function ends it. */
export function pollConnection(
  { id, token }: { readonly id: string; readonly token: string },
  tell: (polled: PolledConnection) => void,
): () => void {
  const abort = new AbortController();
  const poll = async (): Promise<void> => {
    const polled = await read(id, token, abort.signal);
    if (abort.signal.aborted || polled === null) return;
    if (polled.status !== "pending") abort.abort();
    tell(polled);
  };
  const timer = setInterval(() => void poll(), POLL_MS);
  abort.signal.addEventListener("abort", () => clearInterval(timer));
  void poll();
  return () => abort.abort();
}

async function read(
  id: string,
  token: string,
  signal: AbortSignal,
): Promise<PolledConnection | null> {
  try {
    const response = await fetch(new URL(`api/v1/connections/${id}`, SERVICE_URL), {
      cache: "no-store",
      credentials: "omit",
      headers: { authorization: `Bearer ${token}` },
      signal,
    });
    if (!response.ok) return null;
    const { status, management_token } = (await response.json()) as {
      readonly status: string;
      readonly management_token?: string;
    };
    return { status, managementToken: management_token ?? null };
  } catch {
    return null;
  }
}
