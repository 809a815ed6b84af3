import { Failure } from '../../core/failure.ts'
import type { Model } from '../../core/models/model.ts'
import { impliedBy, type Operation, operationOf, tasks } from '../../core/schemas/task.ts'
import { engineErrorIn } from '../../core/tasks/protocols/engine-error.ts'
import { presetOf, presets } from './presets.ts'

/** Error text of servers that answer 404 for an unknown model on a known path: vLLM, SGLang, Ollama, OpenAI. */
const unknownModel =
  /\bmodel\b.*\b(not found|not exist|unknown|no such)|\b(no such|unknown) model\b|model_not_found|NotFoundError/i

/**
 * Returns the failure of a request that the engine answered with 404 or 405; undefined for other answers. A retry does
 * not help: the engine has no route for the task, or does not know the model by its upstream name.
 */
export function missingRoute(model: Model, path: string, status: number, body: string): Failure | undefined {
  if (status !== 404 && status !== 405) return undefined
  const { routes, upstreamId } = presetOf(model).traits(model)
  const { message, code, type } = engineErrorIn(body)
  if (status === 404 && unknownModel.test(`${code ?? ''} ${type} ${message}`))
    return new Failure(
      'unsupported_task',
      `The engine of '${model.id}' (${model.engine}) does not know the model '${upstreamId}'. Set 'upstream_id' in infer.yaml to the name that the engine uses.`,
    )
  const operation = (Object.keys(routes) as Operation[]).find(one => routes[one]?.path === path)
  if (!operation) return undefined
  const task = tasks.find(one => operationOf(one) === operation && impliedBy[one] === undefined)
  const what = task === undefined ? 'this request' : `'${task}'`
  const able = [...presets.values()].filter(
    preset =>
      !preset.assumesRoutes && preset.name !== model.engine && preset.traits(model).routes[operation] !== undefined,
  )
  const names = able.map(({ name }) => `'${name}'`).join(', ')
  const instead = names === '' ? '' : ` These have one: ${names}; set 'engine' in infer.yaml.`
  return new Failure(
    'unsupported_task',
    `The engine of '${model.id}' (${model.engine}) has no route for ${what}: it answered ${status} at ${path}.${instead}`,
  )
}
