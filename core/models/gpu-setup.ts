/** A package of a backend for GPUs. */
export interface BackendPackage {
  name: string
  version: string
  bytes: number
  license: string
}

/** What the built-in engine needs to use the GPUs of this machine. */
export interface GpuSetupPlan {
  /** Whether a GPU is here that the built-in engine can use with a backend, or once something else is mended. */
  needed: boolean
  /** Whether a backend is installed already. */
  installed: boolean
  /** The backend that suits the GPUs and their driver; null if none does, or if no GPU is here. */
  backend: string | null
  /** Why this backend, or why none; without a full stop. */
  why: string
  /** What else to do, such as how to update the driver, as sentences; null if nothing. */
  advice: string | null
  /** What is missing of it. */
  packages: readonly BackendPackage[]
  /** Bytes to download. */
  bytes: number
  /** Hosts from which it is downloaded. */
  source: string
  /** Where it is installed. */
  folder: string
}

/** A setup that was begun since the start of the server. */
export interface GpuSetupRun {
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** The file that is downloaded now, or was last; null before the first. */
  file: string | null
  bytes: number
  totalBytes: number
  /** What the trial of the backend found, or why the setup failed, as a sentence; null before the end. */
  detail: string | null
}

/**
 * Sets up the backend with which the built-in engine uses the GPUs, as `infer engine setup gpu` does, in a process of its
 * own.
 */
export interface GpuSetup {
  plan(): Promise<GpuSetupPlan>
  /** The newest run; null before any. */
  run(): GpuSetupRun | null
  /** Begins to download and install. Throws Failure `conflict` if a run is under way or no backend suits. */
  begin(): Promise<GpuSetupRun>
  /** Stops the run; what has arrived is kept. Null: none is under way. */
  cancel(): GpuSetupRun | null
}
