import type { Discovery } from '../devices/device.ts'
import type { SandboxRequirements } from '../sandbox/level.ts'

/**
 * Starts engines somewhere: as processes of this machine, or elsewhere. Launch ids are ours; port, card, node and address are
 * results. `launches.ts` is the only caller, and test/gpu/launcher/_conformance.ts says what each implementation must do.
 *
 * Every call may be aborted by its signal, and none may block the event loop for longer than 2 ms: requests run on it. A call
 * that rejects with Failure `worker_error` was refused and has changed nothing; after any other rejection nobody knows what
 * it has done, so it is repeated.
 */
export interface Launcher {
  /** Milliseconds between two lists where no change is announced. */
  readonly pollMs: number
  /**
   * Starts an engine. Resolves once it is accepted, which may be long before it runs. A launch id that was started before
   * is not started again, also if it has ended.
   */
  start(options: LaunchOptions, signal: AbortSignal): Promise<void>
  /**
   * Every launch of this server: those that an earlier run of it has started, and those that have ended in the last minute at
   * least. Rejects where it is not known what runs: an empty list means that nothing does.
   */
  list(signal: AbortSignal): Promise<readonly Launch[]>
  /**
   * Begins to end an engine and all its descendants: asks it, and kills it after `graceMs`. Resolves once that is accepted;
   * `list` tells when it is `gone`. A later call may shorten the grace. Does nothing for a launch that has ended.
   */
  stop(launchId: string, graceMs: number, signal: AbortSignal): Promise<void>
  /**
   * What the engine prints, from this byte on, or from the first later one that is still known. Ends when the engine has
   * ended and everything was read.
   */
  logs(launchId: string, from: number, signal: AbortSignal): AsyncIterable<LogPiece>
  /** The devices on which its engines run; advisory, as others may use them too. */
  capacity(signal: AbortSignal): Promise<Discovery>
  /** Calls the listener when `list` may have changed. It may be called in vain, and calls may be missing. */
  watch(listener: () => void): () => void
  /** Sets what the next server is told of an engine, as plain data, should it outlive this one. */
  note(launchId: string, note: object): void
  /** Calls the listener when an engine cannot be reached any more, or can be again: earlier than the next list says so. */
  watchReach?(listener: (launchId: string, isReached: boolean) => void): void
  /** A request could not connect to an engine: looks at once whether it can be reached. Absent where the list is quick to know. */
  check?(launchId: string): void
  /** What may have caused this end besides the engine: see `ProcessExit`. */
  hints?(launchId: string, status: string, lastError: string): Hints | Promise<Hints>
  /** Lets go of all engines without ending them, for another server of the same data directory. */
  leave(): Promise<void>
  /** Ends what is left of its engines, as far as they do not outlive this server, and releases what it holds. */
  close(): Promise<void>
}

/** See `ProcessExit`. */
type Hints = Pick<ProcessExit, 'hint' | 'loadingHint'>

/** One launch at one time: plain data. */
export interface Launch {
  launchId: string
  engineId: string
  modelId: string
  /** `pending`: accepted, and not started yet. `gone`: none of its processes is left. */
  state: 'pending' | 'running' | 'ending' | 'gone'
  /** Why it is pending, ending or gone, as a sentence; null where nobody knows. */
  reason: string | null
  /** The name of the machine on which it runs; null if it is this one, or not known yet. */
  node: string | null
  /** Its process id on that machine, in the PID namespace of the machine; null if it is not known. */
  pid: number | null
  /**
   * Where it answers; null before that is known. `generation` is raised when it was started again under its launch id: what it
   * had loaded or was doing is lost.
   */
  endpoint: (Endpoint & { generation: number }) | null
  /**
   * It is listed as running, and nobody listens at its address. It may be dead, or cut off. Only launchers that give no card twice
   * say so: another engine may then be started before this one has ended.
   */
  isUnreachable?: boolean
  /** Exit code or signal of one that is gone: `3`, `SIGSEGV`; null if it is not known. */
  status: string | null
  /** When it is ended by whoever lent the machine, epoch milliseconds; null if there is no such time. */
  endsAt: number | null
  /** What the server that started it has noted last; null if it did not. */
  note: unknown
  /** Texts that are redacted in its output, besides what looks like a secret. */
  secrets: readonly string[]
}

export interface Endpoint {
  origin: string
  /** All origins of an engine that has several, `origin` included. */
  origins?: readonly string[] | undefined
  socketPath?: string | undefined
  /** Absent where nobody else can reach the engine. */
  tls?: EndpointTls | undefined
}

/**
 * The key of a launch: a self-signed certificate with its private key, as PEM texts. Both sides of a connection present this
 * certificate and trust it alone.
 */
export interface EndpointTls {
  certificate: string
  key: string
}

/** `at`: the number of bytes printed before these. */
export interface LogPiece {
  at: number
  bytes: Uint8Array
}

export interface LaunchOptions {
  launchId: string
  /** The same for all launches of one engine. */
  engineId: string
  modelId: string
  /** Program and arguments; the launcher replaces `{port}`, `{socket}`, `{home}` and `{outputs}`. Empty for a remote address. */
  argv: readonly string[]
  /** Python environments in which the program is looked for before the PATH: see `enginePath`. */
  environments?: readonly string[]
  channel: 'port' | 'socket'
  /** Headers of every request to it; none for an engine that has no key of its own. */
  headers?: readonly string[]
  /** Variables added to the environment that every engine gets. */
  env: Readonly<Record<string, string>>
  /** The variables by which it sees only its devices. */
  visibleDevices: Readonly<Record<string, string>>
  /** Which files and network the engine may access. */
  sandbox: SandboxRequirements
  /** What a launcher elsewhere asks its machines for. Absent on this machine, where placement has chosen the cards. */
  needs?: LaunchNeeds | undefined
  /**
   * Further arguments on all nodes but the first, for an engine that spans several. Then the launcher also replaces
   * `{nodes}`, `{node_rank}`, `{first_node}` and `{first_node_port}`: the address of the first node, and a free port there.
   */
  otherNodes?: readonly string[] | undefined
  /** The `source` of its model, for a launcher elsewhere that brings files to its machines. */
  source?: string | undefined
  /** The origins of an engine that runs elsewhere, which serve alike. */
  addresses?: readonly string[] | undefined
}

export interface LaunchNeeds {
  /** Nodes that the engine spans; the other numbers are of each. */
  nodes: number
  cards: number
  cpus: number
  /** Bytes of main memory. */
  memoryBytes: number
  /** Milliseconds after which its machine may end it; null for no such time. */
  maxMs: number | null
  /** The image of its container, and its program there if that is not the first word of `argv`; absent if none is known. */
  image?: { name: string; program?: string | undefined } | undefined
}

export interface ProcessExit {
  /** Exit code or signal: `3`, `SIGSEGV`; a word where nobody knows it. */
  status: string
  /** Nobody knows how it has ended: its machine may have failed, or somebody has taken it. */
  isLost?: boolean
  /** The output line that best explains the exit, or an empty string. */
  lastError: string
  /** If the sandbox or the machine may be the cause: what to do, as a sentence. Otherwise an empty string. */
  hint?: string
  /** The same for an engine that was not ready yet, for the owner of the machine: names a path of it. */
  loadingHint?: string
}

/** Values of variables whose name indicates a secret; they are redacted in the engine's output. */
export const secretsIn = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i.test(name) && value.length >= 8 ? [value] : [],
  )
