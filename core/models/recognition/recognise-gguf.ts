import { Failure } from '../../failure.ts'
import { tasksBy } from '../../schemas/task.ts'
import type { GgufHeader } from '../gguf-header.ts'
import { recogniseDiffusion } from './recognise-file.ts'
import type { Recognition } from './recognition.ts'

/** Text encoders of image models, which generate nothing by themselves. */
const encoders: ReadonlySet<string> = new Set(['t5', 't5encoder'])

/**
 * Returns what a GGUF file is that llama.cpp does not run; null for a text model. Throws Failure for a file that is only
 * a part of a model.
 */
export function recogniseGguf(path: string, { architecture, diffusion, kind }: GgufHeader): Recognition | null {
  if (diffusion) return recogniseDiffusion(path, diffusion)
  if (kind !== 'model') return null
  if (architecture === 'whisper')
    return {
      is: 'Whisper, GGUF',
      tasks: tasksBy('transcribe', 'translate'),
      because: 'Whisper transcribes and translates',
      engines: ['whisper-server'],
    }
  if (encoders.has(architecture))
    throw new Failure(
      'invalid_value',
      `'${path}' is a T5 text encoder, not a whole model. Add the image or video model that needs it.`,
    )
  return null
}
