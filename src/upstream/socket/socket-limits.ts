// The bounds of a socket to a provider, unless a test tightens them. Values only.

/** The usual bounds. */
export const SOCKET_LIMITS = {
  handshakeTimeoutMs: 5_000,
  maxFrameBytes: 134_217_728,
  /** Of users' providers. */
  maxGuardedFrameBytes: 33_554_432,
  /** How long a closing handshake may take. */
  closeTimeoutMs: 1_000,
  /** Most calls that may wait for the socket to open, and for their answers. */
  maxWaiting: 1_000,
  maxPending: 10_000,
  /** Unsent bytes beyond which nothing more is sent. */
  maxBufferedBytes: 16_777_216,
  /** Consecutive frames that belong to nothing, after which the connection is dropped. */
  maxStrays: 1_000,
  /** Silence after which a connection is pinged, and after which it is dropped. */
  pingAfterMs: 15_000,
  deadAfterMs: 30_000,
  /** How long an unused connection stays open. */
  idleMs: 60_000,
  /** Interval of the checks whether it is alive and needed. */
  checkEveryMs: 3_000,
  /** Waits between attempts to open it: at first, at most, and after refused credentials. */
  backoffMs: 1_000,
  maxBackoffMs: 30_000,
  authBackoffMs: 120_000,
  /** Least wait before a call may open it early. */
  hurryMs: 1_000,
  /** A connection that lived this long resets the waits. */
  steadyMs: 5_000,
  maxFeeds: 10_000,
  /**
   * Bounds of notifications that are held because they arrived before the acknowledgement of their
   * subscription.
   */
  maxHeldFrames: 256,
  maxHeldBytes: 1_048_576,
  maxHeldMs: 5_000,
  /** At least so many bytes of a message must arrive in each window of this length. */
  paceWindowMs: 30_000,
  paceWindowBytes: 30_720,
  /** Longest time for one message. */
  maxMessageMs: 450_000,
  /**
   * Silence after which an unanswered `eth_subscribe` is sent again, since its answer may have been
   * lost, and after which the waiting listeners are refused.
   */
  askAgainMs: 2_000,
  acknowledgeMs: 10_000,
};

/** The bounds of one socket. */
export type SocketLimits = Readonly<typeof SOCKET_LIMITS>;
