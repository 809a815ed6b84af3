import type { Task } from '../schemas/task.ts'

/** What a catalogue says of a model and of this machine. Sizes are bytes. */
export interface CatalogEntryView {
  name: string
  title: string
  aliases: readonly string[]
  summary: string
  kind: string
  license: string
  tasks: readonly Task[]
  parameters: number | null
  /** Tokens. */
  context: number | null
  chosen: {
    engine: string | null
    repository: string | null
    quantization: string | null
    fit: { grade: string; text: string; memory: number | null }
    why: string
  }
}

/** Settings of a model that are given and not proposed. */
export interface NewModelSettings {
  id?: string | undefined
  tasks?: readonly Task[] | undefined
  context?: number | undefined
  concurrency?: number | undefined
  engine?: string | undefined
  /** Such as `24GB`. */
  memory?: string | undefined
  /** Id of the base of a LoRA adapter, which has no other settings but `id`. */
  adapterOf?: string | undefined
  /** Whether to add it although it cannot run here. */
  force?: boolean | undefined
}

/** Lines of infer.yaml that a change adds and removes. */
export interface ConfigLines {
  added: string[]
  removed: string[]
}

/** What adding a model would write, or has written. */
export interface ModelProposal {
  model: Readonly<Record<string, unknown>> & { id: string }
  /** Bytes of device memory; null if unknown. */
  memory: number | null
  /** Why it cannot run here; null if it can. */
  obstacle: string | null
  /** Whether this machine has the memory and the GPU for it. */
  fits: boolean
  /** What else to install or to configure before it runs, as sentences. */
  advice: string[]
  lines: ConfigLines
}

export interface ModelDownload {
  /** `download_…` */
  id: string
  /** What was asked for. */
  model: string
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** The file that is downloaded now, and how many of its bytes are here; null before the first one. */
  file: string | null
  bytes: number
  totalBytes: number
  /** Id under which the model is offered; null before. */
  modelId: string | null
  error: { code: string; message: string } | null
  /** Epoch milliseconds. */
  createdAt: number
  finishedAt: number | null
}

/**
 * Adds models to infer.yaml of this machine, downloads their files, and removes them, as `infer model` does. Reads and
 * changes go through the commands, in processes of their own, so that there is one way for all.
 */
export interface ModelAdministration {
  /** The catalogue with how each model fits this machine, best first. */
  catalog(): Promise<readonly CatalogEntryView[]>
  /** What adding the model would write. Changes nothing; may read the header of a file over the network. */
  propose(model: string, settings: NewModelSettings, signal: AbortSignal): Promise<ModelProposal>
  /** Begins to download and add a model. Throws Failure `conflict` if too many downloads run. */
  add(model: string, settings: NewModelSettings): Promise<ModelDownload>
  /** The newest downloads, newest first; those of earlier starts of the server are not known. */
  downloads(): readonly ModelDownload[]
  /** Stops a download; what has arrived is kept. Undefined: there is none. */
  cancel(id: string): ModelDownload | undefined
  /** Removes a model from infer.yaml; `dryRun` only says which lines. */
  remove(
    id: string,
    options: { dryRun: boolean; deleteFiles: boolean },
  ): Promise<{ lines: ConfigLines; deleted: string[] }>
}

/** Progress of a pull. */
export type ModelPullEvent =
  /** What is done now, as words: `pulling manifest`. */
  { status: string } | { file: string; bytes: number; total: number }

/**
 * Downloads a model to this machine and offers it, as `infer model add` does. Resolves with its id once it is offered.
 * Rejects with Failure, or with the reason of `signal`; then what has been downloaded is kept.
 */
export type ModelPull = (
  name: string,
  options: { signal: AbortSignal; onEvent: (event: ModelPullEvent) => void },
) => Promise<string>
