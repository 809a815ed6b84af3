import { modelAllowed } from '../../core/accounts/model-allowed.ts'
import { type Failure, invalid } from '../../core/failure.ts'
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
export function allowedChatModel(exchange: ClientExchange, id: string, { registry }: Owners<'registry'>) {
  const entry = modelFor(taskRecord(conversationTask), id, registry.catalog())
  const { token } = exchange.caller
  if (modelAllowed(token.models, entry.id)) return entry
  throw invalid('model', `The token '${token.name}' may not use the model '${entry.id}'.`, 'model_not_allowed')
}

/** Ids of the enabled models that do the task and that the token may use. */
export const modelsFor = (task: Task, exchange: ClientExchange, { registry }: Owners<'registry'>): string[] =>
  [...registry.catalog().values()]
    .filter(({ id, tasks }) => tasks.includes(task) && modelAllowed(exchange.caller.token.models, id))
    .map(({ id }) => id)

/** The models that the token may use, disabled ones included. */
export const allowedModels = ({ caller }: ClientExchange, { registry }: Owners<'registry'>): Model[] =>
  registry.all().filter(({ id }) => modelAllowed(caller.token.models, id))

/** The enabled models that the token may use. */
export const visibleModels = (exchange: ClientExchange, owners: Owners<'registry'>): Model[] =>
  allowedModels(exchange, owners).filter(({ enabled }) => enabled)

/** The failure for a model that is not among these, with the nearest of them. `list` is the route that lists them. */
export const modelNotFound = (id: string, models: readonly Model[], list: string, param = 'model'): Failure => {
  const ids = models.map(model => model.id)
  return invalid(
    param,
    `The model '${id}' does not exist here.${didYouMean(nearestModels(id, ids))} GET ${list} lists the existing ones.`,
    'model_not_found',
  )
}
