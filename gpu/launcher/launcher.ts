import type { SandboxRequirements } from '../sandbox/level.ts'

/**
 * The seam behind which engines are started. Today a child process of this machine or an address elsewhere; later a
 * batch job or a pod. Launch ids are ours; addresses, ports and process ids are results, never inputs.
 */
export interface Launcher {
  /**
   * Starts an engine. Resolves when it exists, long before it can work. Rejects with Failure `worker_error` when it
   * cannot be started at all (no such program), and says so.
   */
  start(options: LaunchOptions): Promise<Launched>
  /** Everything started and not yet gone. */
  list(): Promise<Launch[]>
  /**
   * Asks the engine to end, kills it after `graceMs`, and resolves when it and everything it started are gone.
   * Does nothing for a launch that is gone already.
   */
  stop(launchId: string, graceMs: number): Promise<void>
  /** The last lines it printed, oldest first, up to a megabyte. Kept for a while after its end. */
  logs(launchId: string): string[]
}

export interface LaunchOptions {
  launchId: string
  /** Of all launches of one engine. */
  engineId: string
  modelId: string
  /** Program and arguments; `{port}` and `{socket}` are filled in where it is started. Empty for an address elsewhere. */
  argv: readonly string[]
  /** Whether the engine listens on a loopback port or on a Unix socket. */
  channel: 'port' | 'socket'
  /** What the engine needs besides the environment that every engine gets. */
  env: Readonly<Record<string, string>>
  /** What CUDA_VISIBLE_DEVICES says: indexes or slices, empty for the processor alone. */
  visibleDevices: string
  /** What it can reach of this machine. */
  sandbox: SandboxRequirements
  /** Set for an engine that runs elsewhere: where it answers. */
  address?: string
}

export interface Launched {
  launchId: string
  /** The engine's own process as this machine numbers it; null for an address elsewhere. */
  pid(): number | null
  endpoint: Endpoint
  /** Resolves when the engine and everything it started are gone. */
  exited: Promise<Exit>
  /** Milliseconds on the monotonic clock of the last new line of output, or of the start. */
  lastOutputAt: () => number
}

/** Where an engine answers HTTP. */
export interface Endpoint {
  origin: string
  socketPath?: string
}

export interface Exit {
  /** `3`, `SIGSEGV`: how the process ended. */
  status: string
  /** The line of its output that says why best, or an empty string. */
  lastWords: string
  /** What to do when its sandbox may be the cause, as a sentence, or an empty string. */
  hint?: string
}

export interface Launch {
  launchId: string
  modelId: string
  pid: number | null
  startedAt: number
}
