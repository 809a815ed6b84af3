import { Failure } from '../../core/failure.ts'
import type { ModelPull, ModelPullEvent } from '../../core/models/model-pull.ts'
import type { CommandEvent, ModelCommand } from './model-command.ts'

/** Names of the hub in references of Ollama's clients. */
const ofHub = /^(?:hf\.co|huggingface\.co)\/([^/:\s]+\/[^/:\s]+)(?::([^/\s]+))?$/

/**
 * Returns what `infer model add` takes for a name in Ollama's form: a short name of the catalog or a repository of the
 * hub. Files of this machine and other addresses cannot be named. Throws Failure `invalid_value`, `model_not_found`.
 */
async function addable(name: string): Promise<string> {
  const [, repository, file] = ofHub.exec(name) ?? []
  if (repository !== undefined) return `hf:${repository}${file === undefined || file === 'latest' ? '' : `:${file}`}`
  if (/^hf:[^/\s]+\/[^/\s]+$/.test(name)) return name
  const { findCatalogModel, nearestCatalogNames } = await import('../../core/models/model-catalog/model-catalog.ts')
  const { didYouMean } = await import('../../core/nearest.ts')
  const model = findCatalogModel(name.replace(/:latest$/, ''))
  if (model) return model.name
  throw new Failure(
    'model_not_found',
    `The catalog has no model '${name.slice(0, 128)}'.${didYouMean(nearestCatalogNames(name))} See the names with: infer model catalog. For a repository of the hub, write hf.co/owner/name.`,
    { param: 'model' },
  )
}

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
    const what = await addable(name)
    const onCommandEvent = (event: CommandEvent) => {
      const progress = progressOf(event)
      if (progress) onEvent(progress)
    }
    const added = await run<{ model: { id: string } }>(['add', what, '--events'], { signal, onEvent: onCommandEvent })
    onEvent({ status: 'writing manifest' })
    return added.model.id
  }
