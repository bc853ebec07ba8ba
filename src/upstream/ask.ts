// One call to one provider outside of routing: what probes and subscriptions need to know for themselves. Never counted among callers' requests.
import { type Failure, plainFailure } from "../core/attempt.ts";
import type { Provider } from "../core/profile.ts";
import { writeRequest } from "../core/wire-request.ts";
import type { Listener, Upstream } from "./transport.ts";
import type { Wheel } from "./wheel.ts";

/** What is asked of whom. */
export interface Inquiry {
  readonly upstream: Pick<Upstream, "send">;
  readonly provider: Provider;
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
  readonly timeoutMs: number;
  /** Whether the provider is there is the question. */
  readonly isProbe?: true;
}

/** Hears the raw JSON of the result, or why there is none. */
export interface Inquirer {
  result(result: Buffer): void;
  failed(failure: Failure): void;
}

/** Asks. Returns the way to stop; nobody hears anything after that. */
export function ask(wheel: Wheel, { upstream, provider, method, params, timeoutMs, isProbe }: Inquiry, inquirer: Inquirer): () => void {
  const fail = (failure: Failure): void => {
    alarm.clear();
    inquirer.failed(failure);
  };
  const listener: Listener = {
    result(body, { start, end }) {
      alarm.clear();
      inquirer.result(body.subarray(start, end));
    },
    stream(stream) {
      stream.cut();
      fail(plainFailure("body", "the answer is too long"));
    },
    broken() {},
    failed: fail,
  };
  // Where this process was held up, the answer may be here and not read yet: one turn later it is.
  let alarm = wheel.set(timeoutMs, () => {
    alarm = wheel.set(0, expire);
  });
  const expire = (): void => {
    const { sent, queued } = dispatch;
    dispatch.cancel();
    const failure = plainFailure(sent ? "timeout" : "unsent", "no answer in time");
    fail(!sent && queued === true ? { ...failure, crowded: true } : failure);
  };
  const dispatch = upstream.send(
    { provider, ...writeRequest(method, Buffer.from(params)), mayStream: false, ...(isProbe === undefined ? {} : { isProbe }) },
    listener,
  );
  return () => {
    alarm.clear();
    dispatch.cancel();
  };
}
