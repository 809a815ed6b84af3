import { type Failure, invalid } from '../../core/failure.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { ModelSetEntry } from '../../core/models/engine-traits.ts'
import type { Model } from '../../core/models/model.ts'
import { type ListedModel, type ModelName, nameAllowed } from '../../core/models/model-names.ts'
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
  if (entryAllowed(exchange, entry)) return entry
  const { name } = exchange.caller.token
  throw invalid('model', `The token '${name}' may not use the model '${entry.id}'.`, 'model_not_allowed')
}

/** Whether the token may use the model under the name of the entry. */
export const entryAllowed = ({ caller }: Pick<ClientExchange, 'caller'>, { id, named }: ModelSetEntry): boolean =>
  nameAllowed(caller.token.models, { id, ...(named ?? { kind: 'id', modelId: id }) })

/** Ids of the enabled models and their profiles that do the task and that the token may use. */
export const modelsFor = (task: Task, exchange: ClientExchange, { registry }: Owners<'registry'>): string[] =>
  [...registry.catalog().values()]
    .filter(entry => entry.named?.kind !== 'alias' && entry.tasks.includes(task) && entryAllowed(exchange, entry))
    .map(({ id }) => id)

/** The names by which the token may use models, disabled ones included. */
export const allowedNames = ({ caller }: ClientExchange, { registry }: Owners<'registry'>): ModelName[] =>
  [...registry.names()].filter(({ listed }) => nameAllowed(caller.token.models, listed))

/** The models that the token may use under any name, disabled ones included. */
export function allowedModels(exchange: ClientExchange, owners: Owners<'registry'>): Model[] {
  const ids = new Set(allowedNames(exchange, owners).map(({ model }) => model.id))
  return owners.registry.all().filter(({ id }) => ids.has(id))
}

/** The models and profiles that the token may use, disabled ones included. */
export const listedModels = (exchange: ClientExchange, owners: Owners<'registry'>): ListedModel[] =>
  allowedNames(exchange, owners).flatMap(({ kind, listed }) => (kind === 'alias' ? [] : [listed]))

/**
 * The enabled models that the token may use, under each of their names. Another infer sees none of further infers: its requests
 * are not passed on to them.
 */
export const visibleModels = (exchange: ClientExchange, owners: Owners<'registry'>): ListedModel[] =>
  allowedNames(exchange, owners).flatMap(({ listed }) =>
    listed.enabled && !(exchange.caller.isRelayed && engineFacts(listed.engine).isInfer) ? [listed] : [],
  )

/** Finds a model by any of its names that the token may use. Throws Failure `model_not_found`. */
export function allowedModel(
  name: string,
  exchange: ClientExchange,
  owners: Owners<'registry'>,
  list: string,
  param = 'model',
): ModelName {
  const names = allowedNames(exchange, owners)
  const found = names.find(one => one.name === name)
  if (found) return found
  throw modelNotFound(
    name,
    names.map(({ listed }) => listed),
    list,
    param,
  )
}

/** The failure for a model that is not among these, with the nearest of them. `list` is the route that lists them. */
export const modelNotFound = (
  id: string,
  models: readonly Pick<Model, 'id'>[],
  list: string,
  param = 'model',
): Failure => {
  const ids = models.map(model => model.id)
  return invalid(
    param,
    `The model '${id}' does not exist here.${didYouMean(nearestModels(id, ids))} GET ${list} lists the existing ones.`,
    'model_not_found',
  )
}
