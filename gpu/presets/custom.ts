import { operationOf } from '../../core/schemas/task.ts'
import { inferGeneration } from '../../core/tasks/protocols/infer-generation.ts'
import { definePreset, upstreamId } from './preset.ts'
import { assumedAbilities } from './routes.ts'

/**
 * Any command that serves an OpenAI-compatible API, or for images and videos the protocol of
 * core/tasks/protocols/generation-call.ts unless `protocol` is `openai`. In its arguments `{model}` is the source, `{id}` the model name in requests,
 * `{threads}` the number of threads, and `{port}` or `{socket}` the address to listen on. INFER_ENGINE_KEY contains the
 * bearer token of the requests, which the engine may check.
 */
export const custom = definePreset({
  name: 'custom',
  usesVulkan: true,
  assumesRoutes: true,
  settings: ['protocol'],
  configurationFault: model =>
    model.command?.some(part => part.includes('{port}') || part.includes('{socket}'))
      ? undefined
      : "it needs 'command', which says where to listen with {port} or {socket}.",
  slots: 16,
  channel: model => (model.command?.some(part => part.includes('{socket}')) ? 'socket' : 'port'),
  command: (model, { threads }) =>
    [...(model.command ?? []), ...model.args].map(part =>
      part.replaceAll(/\{(model|id|threads)\}/g, (_all, name: 'model' | 'id' | 'threads') =>
        name === 'model' ? (model.source ?? '') : name === 'id' ? upstreamId(model) : String(threads),
      ),
    ),
  env: (_model, key) => ({ INFER_ENGINE_KEY: key }),
  healthPath: model => model.health_path ?? (model.comfyui ? '/system_stats' : '/health'),
  runningPath: model => (model.comfyui ? '/prompt' : null),
  reportsRunning: model =>
    !model.comfyui &&
    model.protocol !== 'openai' &&
    model.tasks.some(task => operationOf(task) in inferGeneration.paths),
  abilities: model => assumedAbilities(model),
})
