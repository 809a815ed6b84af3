import type { Task } from '../../core/schemas/task.ts'
import type { Client } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { fetchOfferedModels } from './offered-models.ts'

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
