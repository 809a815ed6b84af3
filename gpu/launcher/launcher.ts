import type { SandboxRequirements } from '../sandbox/level.ts'

/**
 * Interface for starting engines: as a child process of this machine, or by the address of an engine that runs
 * elsewhere. The caller chooses launch ids; addresses, ports and process ids are results, never inputs.
 */
export interface Launcher {
  /**
   * Starts an engine. Resolves when its process exists, long before it is ready. Rejects with Failure `worker_error`
   * if it cannot be started, for example because the program is not installed.
   */
  start(options: LaunchOptions): Promise<Launched>
  /**
   * Sends SIGTERM, then SIGKILL after `graceMs`. Resolves when the engine and all its descendants have exited.
   * Does nothing if the launch has already ended.
   */
  stop(launchId: string, graceMs: number): Promise<void>
  /** Every launch whose process has not ended, those that an earlier server has left included. */
  list(): ListedLaunch[]
  /** Takes over a launch that an earlier server has left; undefined if there is none, or not any more. */
  adopt(launchId: string): Launched | undefined
  /** Sets what the next server is told of an engine, as plain data, should it outlive this one; null: to end it. */
  note(launchId: string, note: object | null): void
  /** Lets go of all engines without ending them, for another server of the same data directory. */
  leave(): Promise<void>
  /** The last lines it printed, oldest first, up to a megabyte. Kept for the latest ended launches too. */
  logs(launchId: string): string[]
}

export interface ListedLaunch {
  launchId: string
  engineId: string
  modelId: string
  endpoint: Endpoint
  /** `left`: an earlier server has started it, and it is neither adopted nor stopped yet. */
  state: 'running' | 'ending' | 'left'
  /** What that server has noted last; null if it did not, or if it is not `left`. */
  note: unknown
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
  /** Variables added to the environment that every engine gets. */
  env: Readonly<Record<string, string>>
  /** The variables by which it sees only its devices. */
  visibleDevices: Readonly<Record<string, string>>
  /** Which files and network the engine may access. */
  sandbox: SandboxRequirements
  /** The base URL of an engine that runs elsewhere. */
  address?: string
}

export interface Launched {
  launchId: string
  /** The engine's process id in the machine's PID namespace; null for a remote address. */
  pid(): number | null
  endpoint: Endpoint
  /** Resolves when the engine and all its descendants have exited. */
  exited: Promise<ProcessExit>
  /** Time of the last distinct output line, or of the start: milliseconds on the monotonic clock. */
  lastOutputAt: () => number
}

export interface Endpoint {
  origin: string
  socketPath?: string
}

export interface ProcessExit {
  /** Exit code or signal: `3`, `SIGSEGV`. */
  status: string
  /** The output line that best explains the exit, or an empty string. */
  lastError: string
  /** If the sandbox may be the cause: what to do, as a sentence. Otherwise an empty string. */
  hint?: string
  /** The same for an engine that was not ready yet, for the owner of the machine: names a path of it. */
  loadingHint?: string
}

/** Launcher for engines that run elsewhere: it uses their address, stops no process and has no logs. */
export function openRemoteLauncher(): Launcher {
  const exits = new Map<string, (exit: ProcessExit) => void>()
  return {
    async start({ launchId, address }) {
      const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>()
      exits.set(launchId, resolve)
      const startedAt = performance.now()
      return { launchId, pid: () => null, endpoint: { origin: address! }, exited, lastOutputAt: () => startedAt }
    },
    async stop(launchId) {
      exits.get(launchId)?.({ status: 'left', lastError: '' })
      exits.delete(launchId)
    },
    list: () => [],
    adopt: () => undefined,
    note() {},
    async leave() {},
    logs: () => [],
  }
}
