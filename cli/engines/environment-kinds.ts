import { readAsset } from '../../core/assets.ts'

/** An environment that `infer engine setup` makes. */
export interface EnvironmentKind {
  name: 'python' | 'speech'
  /** Its list of requirements in gpu/worker. */
  requirements: string
  /** The lowest minor version of Python 3 for which the list is made. */
  pythonMinor: number
  /** Bytes on the disk once it is complete, with what the installation needs meanwhile. */
  bytes: number
  /** Modules that must load before it counts as complete. */
  modules: readonly string[]
}

export const environmentKinds = {
  python: {
    name: 'python',
    requirements: 'lock-diffusion.txt',
    pythonMinor: 11,
    bytes: 9e9,
    modules: ['torch', 'diffusers', 'transformers'],
  },
  speech: {
    name: 'speech',
    requirements: 'lock-speech.txt',
    pythonMinor: 10,
    bytes: 1e9,
    modules: ['faster_whisper', 'piper'],
  },
} as const satisfies Record<string, EnvironmentKind>

/** The files of gpu/worker by their paths. */
export const workerFiles = (): Record<string, string> =>
  JSON.parse(Buffer.from(readAsset('worker.json')).toString('utf8')) as Record<string, string>
