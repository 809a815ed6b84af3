import type { Task } from '../schemas/task.ts'

/** An engine that this machine can start, as `infer engine list --json` prints it. */
export interface EngineView {
  engine: string
  state: 'built_in' | 'installed' | 'missing'
  /** The version that models use without `engine_version`; null if infer did not install it, or it is missing. */
  version: string | null
  /** Path of its program, or of the folder that has it; null if it is built in or missing. */
  path: string | null
  /** Who put it there; null if it is missing. `system`: it is on the PATH. `user`: in `engines` of the data directory. */
  origin: 'infer' | 'setup' | 'user' | 'system' | null
  runs_on: 'gpu' | 'cpu' | 'either'
  /** The tasks of models that it can run. */
  tasks: readonly Task[]
  /** Why it can run no model on this machine, as a sentence; null if it can. */
  blocked: string | null
  /** What to do next, as a sentence; null if nothing. */
  advice: string | null
  /** Names of the setups that install it, or a part of it. */
  setups: readonly string[]
}

/** What `infer engine setup <name>` installs, as `infer engine list --json` prints it. */
export interface EngineSetupView {
  name: string
  title: string
  /** `outdated`: made for another version of infer. `incomplete`: an installation was interrupted. */
  state: 'complete' | 'outdated' | 'incomplete' | 'missing'
  /** The current version; null if it is missing. */
  version: string | null
  /** Where it comes from. */
  source: string
  /** Of its program; null where each library has its own. */
  license: string | null
  /** Bytes on the disk once it is complete, about; null if that is known only from the release. */
  bytes: number | null
  /** Whether it is installed without support for GPUs, because this machine has none. */
  for_processor: boolean
  /** The versions that are installed beside each other. */
  versions: readonly InstalledVersion[]
}

/** A version of a setup that is installed. */
export interface InstalledVersion {
  /** Null for one that was interrupted before it had a version. */
  version: string | null
  /** Whether models use it that name no `engine_version`. */
  is_current: boolean
  /** `outdated`: made for another version of infer. `incomplete`: its installation was interrupted. */
  state: 'complete' | 'outdated' | 'incomplete'
  /** On the disk. */
  bytes: number
  /** Of its folder. */
  path: string
}

export interface EngineList {
  engines: readonly EngineView[]
  setups: readonly EngineSetupView[]
}

/** A setup of an engine that was begun since the start of the server. */
export interface EngineSetupRun {
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** What it does now, or did last; null before the first step. */
  step: string | null
  /** The file that is downloaded now, or was last; null where the installer downloads by itself. */
  file: string | null
  bytes: number
  totalBytes: number
  /** What was installed, or why it failed; null before the end. */
  detail: string | null
  /** The newest lines that it has printed, the last one last. */
  log: readonly string[]
}

/** Lists the engines of this machine and installs them, as `infer engine list` and `infer engine setup` do. */
export interface Engines {
  list(): Promise<EngineList>
  /** The newest run of a setup; null before any. */
  run(name: string): EngineSetupRun | null
  /** Begins to install. Throws Failure `not_found` for an unknown name and `conflict` if a setup runs. */
  begin(name: string): Promise<EngineSetupRun>
  /** Stops the run; what has arrived is kept. Null: it does not run. */
  cancel(name: string): EngineSetupRun | null
}
