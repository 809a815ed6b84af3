import { z } from 'zod'
import { conversationTask } from '../schemas/task.ts'
import type { Config } from './config.ts'
import { offeredModels } from './defaults.ts'
import { namesOf } from './model-names.ts'

/** The other keys in an example of `prompt_rewriting`. */
const rewriting = {
  models: [{ id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }],
  prompt_rewriting: { model: 'qwen3-8b' },
}

/** The section `prompt_rewriting` of infer.yaml. */
export const PromptRewriting = z
  .strictObject({
    model: z.string().meta({
      description: 'Id of the chat model that rewrites prompts. It must be one of the models that are offered.',
      example: 'qwen3-8b',
      with: rewriting,
    }),
    instructions: z.string().min(1).max(4_000).optional().meta({
      description: "Text that is added to infer's own instructions for the model.",
      example: 'Never show people.',
      with: rewriting,
      absent: 'none',
    }),
  })
  .optional()
  .meta({
    description: 'How `POST /api/prompt-rewrite` and `enable_prompt_expansion` of images and videos rewrite prompts.',
    example: { model: 'qwen3-8b' },
    with: rewriting,
    absent: 'prompts are not rewritten',
  })

/** Returns why the model of `prompt_rewriting` cannot rewrite prompts, as a sentence; undefined if it can. */
export function rewritingFault({ models, toys, prompt_rewriting: configured }: Config): string | undefined {
  if (!configured) return undefined
  const offered = offeredModels({ models, toys })
  const able = offered.filter(({ enabled, tasks }) => enabled && tasks.includes(conversationTask))
  if (able.some(one => namesOf(one).includes(configured.model))) return undefined
  const chat = able.map(({ id }) => id)
  const model = offered.find(one => namesOf(one).includes(configured.model))
  const why = !model
    ? `there is no model '${configured.model}'`
    : model.enabled
      ? `the model '${model.id}' does not do ${conversationTask}`
      : `the model '${model.id}' is disabled`
  return `${why}, so it cannot rewrite prompts. ${chat.length > 0 ? `Name one of: ${chat.join(', ')}.` : 'Add a chat model to models.'}`
}
