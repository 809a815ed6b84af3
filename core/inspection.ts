/** What `infer doctor`, the configuration and the data directory say about this installation. For operators. */
export interface Inspection {
  /** Runs the checks of `infer doctor`. Callers at the same time share a run. Rejects with Failure. */
  doctor(): Promise<DoctorReport>
  configuration(): ConfigurationReport
  backups(): Backups
  /** Ends a run of the checks. */
  close(): void
}

/** `warning`: works, but the operator should know. `broken`: keeps the server from working. */
export type FindingState = 'fine' | 'warning' | 'broken'

/** The result of one check. */
export interface InspectionFinding {
  name: string
  state: FindingState
  detail: string
  /** What to do; null when there is nothing to do. */
  advice: string | null
}

export const fine = (name: string, detail: string): InspectionFinding => ({ name, state: 'fine', detail, advice: null })
const advised =
  (state: FindingState) =>
  (name: string, detail: string, advice: string): InspectionFinding => ({ name, state, detail, advice })
export const warning = advised('warning')
export const broken = advised('broken')

export interface DoctorReport {
  /** When the checks ended, epoch milliseconds. */
  at: number
  findings: readonly InspectionFinding[]
}

/** Where the value of a key comes from. */
export type ConfigSource = 'file' | 'command_line' | 'default'

export interface ConfigValue {
  key: string
  /** Title of its section in the reference. */
  section: string
  meaning: string
  /** The value that is in force, as it is written in the file; null if there is none. */
  value: string | null
  /** What no value means, as the end of a sentence; null if the key has a default. */
  absent: string | null
  default: string | null
  source: ConfigSource
  /** The file has another value, which takes effect at the next start. */
  isPending: boolean
}

export interface VariableValue {
  name: string
  meaning: string
  isSet: boolean
  /** Null if it is not set or may contain a secret. */
  value: string | null
  default: string
}

export interface ConfigurationReport {
  path: string
  exists: boolean
  values: readonly ConfigValue[]
  variables: readonly VariableValue[]
}

/** Copies of the database that infer keeps. */
export interface Backups {
  folder: string
  /** Newest first. */
  files: readonly BackupFile[]
}

export interface BackupFile {
  path: string
  bytes: number
  /** Epoch milliseconds. */
  modifiedAt: number
}
