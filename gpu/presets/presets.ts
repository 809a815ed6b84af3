import { Failure } from '../../core/failure.ts'
import type { EngineTraits } from '../../core/models/engine-traits.ts'
import type { Model } from '../../core/models/model.ts'
import { impliedBy, type Operation, operationOf, operationsFor, type Task, tasks } from '../../core/schemas/task.ts'
import { engineErrorIn } from '../../core/tasks/protocols/engine-error.ts'
import { comfyui } from './comfyui.ts'
import { custom } from './custom.ts'
import { demo } from './demo.ts'
import { engineSettings } from './engine-settings.ts'
import { espeakNg } from './espeak-ng.ts'
import { gguf } from './gguf.ts'
import { infer } from './infer.ts'
import { infinity } from './infinity.ts'
import { kokoroFastapi } from './kokoro-fastapi.ts'
import { llamaServer } from './llama-server.ts'
import { piper } from './piper.ts'
import type { Preset } from './preset.ts'
import { python } from './python.ts'
import { remote } from './remote.ts'
import { sdServer } from './sd-server.ts'
import { sglang } from './sglang.ts'
import { sglangDiffusion } from './sglang-diffusion.ts'
import { speaches } from './speaches.ts'
import { tei } from './tei.ts'
import { vllm } from './vllm.ts'
import { vllmOmni } from './vllm-omni.ts'
import { whisperServer } from './whisper-server.ts'

/** Every kind of engine, by the name that `engine:` in infer.yaml uses. */
export const presets: ReadonlyMap<string, Preset> = new Map(
  [
    gguf,
    llamaServer,
    vllm,
    vllmOmni,
    sglang,
    sglangDiffusion,
    tei,
    infinity,
    whisperServer,
    speaches,
    kokoroFastapi,
    sdServer,
    comfyui,
    python,
    piper,
    espeakNg,
    custom,
    remote,
    infer,
    demo,
  ].map(preset => [preset.name, preset]),
)

/** The presets of the models that fit theirs: a request asks twice, and a model does not change. */
const fitting = new WeakMap<Model, Preset>()

/**
 * Returns the preset of a model. Throws Failure `invalid_value` that names the model when there is no such preset, the
 * configuration does not fit the preset, or the engine has no route for one of the model's tasks.
 */
export function presetOf(model: Model): Preset {
  const known = fitting.get(model)
  if (known) return known
  const preset = presets.get(model.engine)
  const wrong = (message: string) => new Failure('invalid_value', `Model '${model.id}': ${message}`)
  if (!preset) throw wrong(`there is no engine '${model.engine}'. Known: ${[...presets.keys()].join(', ')}.`)
  const unsupported = engineSettings.find(field => model[field] !== undefined && !preset.settings?.includes(field))
  if (unsupported === 'parking') throw wrong(`the engine '${preset.name}' cannot be parked. Remove 'parking'.`)
  if (unsupported === 'nodes')
    throw wrong(`the engine '${preset.name}' cannot span nodes. Remove 'nodes', or use the engine vllm.`)
  if (unsupported)
    throw wrong(`the engine '${preset.name}' has no setting '${unsupported}'. Set its options with 'args'.`)
  const fault = preset.configurationFault(model) ?? adaptersFault(model, preset)
  if (fault) throw wrong(`the engine '${preset.name}' cannot run it: ${fault}`)
  if (model.region !== undefined && preset.runsOn !== 'elsewhere')
    throw wrong(
      "'region' is only for the engines 'remote' and 'infer'. For this machine, set 'region' at the top of the file.",
    )
  if (!preset.sandbox && (model.sandbox ?? 'none') !== 'none')
    throw wrong(`'sandbox' has no effect with the engine '${preset.name}', which infer does not start. Remove it.`)
  if (model.sandbox === 'strict' && preset.channel(model) !== 'socket')
    throw wrong(
      "'sandbox: strict' allows no network, but this engine listens on a port. Let it listen on a Unix socket ({socket} in 'command'), or set 'sandbox: files'.",
    )
  const { routes } = preset.traits(model)
  const isSupported = (task: Task) => operationsFor(task, model.tasks).some(one => routes[one] !== undefined)
  const unsupportedTask = model.tasks.find(task => !isSupported(task))
  if (unsupportedTask) {
    const supported = tasks.filter(task => impliedBy[task] === undefined && isSupported(task)).join(', ')
    throw wrong(
      `the engine '${preset.name}' does not support the task '${unsupportedTask}'. It supports: ${supported}.`,
    )
  }
  fitting.set(model, preset)
  return preset
}

/** What is wrong with the adapters of a model, as the end of a sentence; undefined when nothing is. */
function adaptersFault({ adapters = [] }: Model, { adapters: support }: Preset): string | undefined {
  for (const { id, source, scale } of adapters) {
    if (!support) {
      const able = [...presets.values()].filter(preset => preset.adapters).map(({ name }) => name)
      return `it has no LoRA adapters, and '${id}' is one of this model. These engines have: ${able.join(', ')}.`
    }
    const isGguf = /\.gguf$/i.test(source)
    if (support.reads === 'gguf' && !isGguf)
      return `the adapter '${id}' must be a GGUF file. Convert it with convert_lora_to_gguf.py of llama.cpp.`
    if (support.reads === 'folder' && isGguf)
      return `the adapter '${id}' is a GGUF file. Name its folder with adapter_config.json, or use the engine llama-server.`
    if (!support.scales && scale !== 1)
      return `it applies adapters as they are, so 'scale' of the adapter '${id}' must be 1.`
  }
  return undefined
}

/** The traits of this model's engine. Pure data; starts nothing. Throws like `presetOf`. */
export const traitsOf = (model: Model): EngineTraits => presetOf(model).traits(model)

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
