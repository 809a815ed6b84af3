import { modelAllowed } from '../../core/accounts/model-allowed.ts'
import { Failure } from '../../core/failure.ts'
import type { ModelSetEntry } from '../../core/models/engine-traits.ts'
import type { Model } from '../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../core/nearest.ts'
import { conversationTask, type Task } from '../../core/schemas/task.ts'
import { modelFor } from '../../core/tasks/catalog.ts'
import { taskRecord } from '../../core/tasks/registry.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import type { Owners } from '../http/request/owners.ts'

/**
 * Returns the chat model that the request names, for requests that do not run it. Throws Failure `model_not_found`,
 * `unsupported_task`, `model_not_allowed`.
 */
export function allowedChatModel(
  exchange: ClientExchange,
  id: string,
  { registry }: Owners<'registry'>,
): ModelSetEntry {
  const entry = modelFor(taskRecord(conversationTask), id, registry.catalog())
  const { token } = exchange.caller
  if (modelAllowed(token.models, entry.id)) return entry
  throw new Failure('model_not_allowed', `The token '${token.name}' may not use the model '${entry.id}'.`, {
    param: 'model',
  })
}

/** Ids of the enabled models that do the task and that the token may use. */
export const modelsFor = (task: Task, exchange: ClientExchange, { registry }: Owners<'registry'>): string[] =>
  [...registry.catalog().values()]
    .filter(({ id, tasks }) => tasks.includes(task) && modelAllowed(exchange.caller.token.models, id))
    .map(({ id }) => id)

/** The enabled models that the token may use. */
export const visibleModels = (exchange: ClientExchange, { registry }: Owners<'registry'>): Model[] =>
  registry.all().filter(model => model.enabled && modelAllowed(exchange.caller.token.models, model.id))

/** The failure for a model that is not among these, with the nearest of them. `list` is the route that lists them. */
export const modelNotFound = (id: string, models: readonly Model[], list: string, param = 'model'): Failure => {
  const ids = models.map(model => model.id)
  return new Failure(
    'model_not_found',
    `The model '${id}' does not exist here.${didYouMean(nearestModels(id, ids))} GET ${list} lists the existing ones.`,
    { param },
  )
}
