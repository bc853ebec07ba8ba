// TLS connections to one origin. Each offers the origin's last session, so that the provider can
// skip most of the handshake. Certificates and host names are verified as node does by default.
import { isIP, type TcpSocketConnectOpts } from "node:net";
import { createSecureContext, connect as secureConnect, type TLSSocket } from "node:tls";
import type { Runtime } from "../../runtime.ts";

/** Called after each handshake: whether it resumed a session, and what it proved if it did not. */
export type OnHandshake = (isResumed: boolean, proved: ProvedHost | null) => void;

/** A host that has proved its identity. */
export interface ProvedHost {
  /** As `host:port`. */
  readonly host: string;
  /** When its certificate ends. */
  readonly validToMs: number;
}

/** A session that a later connection may resume. */
interface Session {
  /** Node keeps at most 10 KiB. */
  readonly ticket: Buffer;
  /** When the provider last proved its identity: resuming a session does not repeat the proof. */
  readonly verifiedAtMs: number;
}

/** After this time the certificate is verified again. */
const MAX_SESSION_MS = 3_600_000;

/**
 * The TLS client of one origin. Node binds a session to a name, not to a port or to options: no
 * other origin may be given this client.
 */
export class TlsClient {
  readonly #now: Runtime["now"];
  readonly #onHandshake: OnHandshake;
  /** Shared, since making one costs more than a resumed handshake. */
  readonly #secureContext = createSecureContext();
  #session: Session | null = null;

  constructor(now: Runtime["now"], onHandshake: OnHandshake) {
    this.#now = now;
    this.#onHandshake = onHandshake;
  }

  /** A socket that emits `secureConnect` once the provider has proved its identity. */
  connect(options: TcpSocketConnectOpts & { readonly host: string }): TLSSocket {
    const { host, port } = options;
    const beganAtMs = this.#now();
    const offered = this.#sessionAt(beganAtMs);
    const socket = secureConnect({
      ...options,
      secureContext: this.#secureContext,
      ALPNProtocols: ["http/1.1"],
      // Server names are names: an address is verified against the certificate without one.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(offered === null ? {} : { session: offered.ticket }),
    });
    socket.once("secureConnect", () => {
      const isResumed = socket.isSessionReused();
      const validToMs = isResumed ? 0 : Date.parse(socket.getPeerCertificate().valid_to);
      this.#onHandshake(isResumed, isResumed ? null : { host: `${host}:${port}`, validToMs });
    });
    // Node emits a ticket only after the certificate was verified.
    socket.on("session", (ticket) => {
      const isResumed = offered !== null && socket.isSessionReused();
      this.#session = { ticket, verifiedAtMs: isResumed ? offered.verifiedAtMs : beganAtMs };
    });
    return socket;
  }

  /**
   * A connection was not made, or not in time. The session that it offered may be the cause: no
   * later one offers it.
   */
  forget(): void {
    this.#session = null;
  }

  #sessionAt(nowMs: number): Session | null {
    const session = this.#session;
    return session !== null && nowMs - session.verifiedAtMs < MAX_SESSION_MS ? session : null;
  }
}
