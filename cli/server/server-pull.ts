import type { ModelPull, ModelPullEvent } from '../../core/models/model-administration.ts'
import { addableName } from '../models/addable-name.ts'
import type { CommandEvent, ModelCommand } from './model-command.ts'

function progressOf({ event, file, bytes, total_bytes: total }: CommandEvent): ModelPullEvent | undefined {
  if (event === 'connect') return { status: 'pulling manifest' }
  if (event === 'progress' && file !== undefined) return { file, bytes: bytes ?? 0, total: total ?? 0 }
  if (event === 'file' && file !== undefined) return { file, bytes: bytes ?? 0, total: bytes ?? 0 }
  return undefined
}

/** Returns the function with which the server downloads models for Ollama's clients. */
export const openServerPull =
  (run: ModelCommand): ModelPull =>
  async (name, { signal, onEvent }) => {
    const what = await addableName(name)
    const onCommandEvent = (event: CommandEvent) => {
      const progress = progressOf(event)
      if (progress) onEvent(progress)
    }
    const added = await run<{ model: { id: string } }>(['add', what, '--events'], { signal, onEvent: onCommandEvent })
    onEvent({ status: 'writing manifest' })
    return added.model.id
  }
