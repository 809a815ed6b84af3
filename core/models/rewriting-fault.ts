import { conversationTask } from '../schemas/task.ts'
import type { Config } from './config.ts'
import { offeredModels } from './defaults.ts'
import { namesOf } from './model-names.ts'

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
