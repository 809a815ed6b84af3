import { setTimeout as pause } from 'node:timers/promises'
import { remoteServer } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { Task } from '../../core/schemas/task.ts'
import { type Api, type Client, dataOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The status of a model, as a server sends it; of one that is only configured there is less. */
export type ModelStatus = Pick<Api['ModelStatus'], 'model_id' | 'tasks'> &
  Partial<Omit<Api['ModelStatus'], 'status'>> & { status: string }
export type ModelStatusList = Pick<Api['ModelStatusList'], 'configuration'> & { models: ModelStatus[] }

/** A model with its settings and engines. */
export type ModelDetail = Pick<Api['ModelDetail'], 'id' | 'settings' | 'engines'> & { status: ModelStatus }

export const detailOf = ({ api }: Client, id: string, signal?: AbortSignal): Promise<ModelDetail> =>
  dataOf(api.GET('/api/models/{id}', { params: { path: { id } }, signal }))

export const modelStatusOf = ({ api }: Client, signal?: AbortSignal): Promise<ModelStatusList> =>
  dataOf(api.GET('/api/model-status', { signal }))

/**
 * Returns the models that the server offers. Returns none for an older server, or for a token without the read scope:
 * such a caller can still use a model by its id.
 */
export async function fetchOfferedModels(client: Client, signal?: AbortSignal): Promise<ModelStatus[]> {
  try {
    return (await modelStatusOf(client, signal)).models
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.status === 404 || thrown.code === 'insufficient_scope')) return []
    throw thrown
  }
}

/**
 * Returns the requested model, or the first one that does the task. `does` continues the sentence "no model that …".
 * Throws usage for a model that does other tasks, and Failure `model_not_found` when there is none.
 */
export async function chooseModel(
  terminal: Terminal,
  client: Client,
  { task, requested, does }: { task: Task; requested: string | undefined; does: string },
): Promise<string> {
  const models = await fetchOfferedModels(client)
  const able = models.filter(one => one.enabled !== false && one.tasks.includes(task)).map(one => one.model_id)
  const shown = able.slice(0, 8).map(printable).join(', ')
  if (requested !== undefined) {
    const isOther = models.some(one => one.model_id === requested) && !able.includes(requested)
    if (!isOther) return requested
    throw usageFailure(
      `'${printable(requested)}' is not a model that ${does}. ${able.length > 0 ? `Available: ${shown}.` : 'No model here does. See: infer model list'}`,
    )
  }
  const [first] = able
  if (first === undefined)
    throw refused(
      'model_not_found',
      `${client.url} offers no model that ${does}. Add one with 'infer model add', or under "models" in infer.yaml.`,
    )
  if (able.length > 1) terminal.remark(`Model: ${printable(first)}. Choose another with --model: ${shown}.`)
  return first
}

/** Maximum time for the server to read infer.yaml again. Milliseconds. */
const reloadWithinMs = 5_000

/** Whether the server offers the model now; undefined when no local server runs. Waits for it to read infer.yaml. */
export async function isOffered(id: string, dataDir: string, signal: AbortSignal): Promise<boolean | undefined> {
  if (remoteServer() || !runningServer(dataDir)) return undefined
  const deadline = performance.now() + reloadWithinMs
  for (;;) {
    const { models } = await modelStatusOf(openClient(dataDir), signal)
    if (models.some(({ model_id }) => model_id === id)) return true
    if (performance.now() > deadline) return false
    await pause(100, undefined, { signal })
  }
}
