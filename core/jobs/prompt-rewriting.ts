import type { AbortSource } from '../abort-source.ts'
import type { Limits } from '../config.ts'
import { Failure, invalid } from '../failure.ts'
import type { Media, MediaSender } from '../media/media.ts'
import { catalogOfWork, type NamedWork } from '../models/model-names.ts'
import type { Registry } from '../models/registry.ts'
import { conversationTask } from '../schemas/task.ts'
import type { Usage } from '../store/store.ts'
import { answerBound } from '../tasks/answer-bound.ts'
import { withImages } from '../tasks/chat/images.ts'
import type { Preparation } from '../tasks/preparation.ts'
import { ask } from '../tasks/protocols/ask.ts'
import { readRewrite } from '../tasks/rewriting/read-rewrite.ts'
import { type RewriteOptions, rewriteRequest } from '../tasks/rewriting/rewrite-request.ts'
import type { CallAttempt, CallEnd } from './call.ts'

/** A prompt to rewrite, and the chat model that does it. */
export interface Rewriting extends Omit<RewriteOptions, 'instructions'> {
  /** The name by which the model was chosen. */
  modelId: string
  /** Set if another model does it. */
  work?: NamedWork | undefined
  /** Who sent the prompt: for its image. */
  sender: MediaSender
  caller: AbortSource
}

/** A rewrite that can be run as a call. `prompts` and `usage` are set once an attempt has completed. */
export interface PreparedRewrite {
  attempt: CallAttempt
  prompts: readonly string[]
  usage: Usage
}

const nothing: Usage = { inputTokens: 0, outputTokens: 0 }

/**
 * Rewrites prompts with chat models. A rewrite is a call like any other: the caller admits it and runs its attempt, so it
 * waits in the queue of the model and leaves a record.
 */
export function openPromptRewriting(dependencies: {
  cpu: Pick<Preparation, 'prepare' | 'shape' | 'insertImages'>
  media: Pick<Media, 'imageDataUrl'>
  registry: Pick<Registry, 'catalog'>
  limits: Limits
  /** Further instructions of the operator. */
  instructions: string | undefined
  /** Called with the usage of each answer. */
  used: (modelId: string, usage: Usage) => void
}) {
  const { cpu, media, registry, limits, instructions, used } = dependencies
  return {
    /**
     * Prepares a rewrite and fetches its image. Rejects with Failure: `model_not_found`, `unsupported_task`,
     * `unsupported_parameter` for an image that the model cannot see, or that of the image.
     */
    async prepare({ modelId, work, sender, caller, ...options }: Rewriting): Promise<PreparedRewrite> {
      const catalog = work ? catalogOfWork(registry.catalog(), work) : registry.catalog()
      const entry = catalog.get(modelId)
      if (options.imageUrl !== undefined && entry && !entry.traits.features.has('images'))
        throw invalid(
          'image_url',
          `The model '${modelId}', which rewrites the prompt, cannot see images. Remove 'image_url', or choose a model that can.`,
          'unsupported_parameter',
        )
      // An unknown model is refused by `prepare`.
      const request = entry ? rewriteRequest({ ...options, instructions }, entry) : { model: modelId }
      const body = Buffer.from(JSON.stringify(request))
      const checked = await cpu.prepare(conversationTask, body, catalog, limits)
      const prepared = await withImages(checked, ({ value }) => media.imageDataUrl(sender, 'image_url', value), cpu)
      const { path, answerFormat } = prepared
      const { count, maxLength } = options

      const rewrite: PreparedRewrite = {
        prompts: [],
        usage: nothing,
        async attempt(lease): Promise<CallEnd> {
          let answer: Buffer
          try {
            answer = await ask(lease, path, prepared.bodies[0]!, answerBound(answerFormat, limits), caller)
          } catch (thrown) {
            const failure = Failure.from(thrown)
            if (failure.code === 'cancelled') return { how: 'cancelled', usage: nothing }
            return failure.code === 'worker_error'
              ? { how: 'retry', failure }
              : { how: 'failed', failure, usage: nothing }
          }
          const shaped = await cpu.shape([answer], answerFormat)
          const { usage } = shaped
          used(lease.modelId, usage)
          caller.throwIfAborted()
          try {
            rewrite.prompts = readRewrite(contentOf(shaped.body), { modelId: checked.modelId, count, maxLength })
          } catch (thrown) {
            // Another sample may have a prompt.
            return { how: 'retry', failure: Failure.from(thrown) }
          }
          rewrite.usage = usage
          return { how: 'completed', usage }
        },
      }
      return rewrite
    },
  }
}
export type PromptRewriting = ReturnType<typeof openPromptRewriting>

/** The text of a chat completion that was shaped for a caller. */
function contentOf(body: string | Uint8Array): string | null {
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
  const { choices } = JSON.parse(text) as { choices: { message: { content: string | null } }[] }
  return choices[0]?.message.content ?? null
}
