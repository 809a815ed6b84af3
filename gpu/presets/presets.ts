import { Failure } from '../../core/failure.ts'
import type { EngineTraits } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import { impliedBy, type Task, tasks } from '../../core/schemas/task.ts'
import { custom } from './custom.ts'
import { demo } from './demo.ts'
import { gguf } from './gguf.ts'
import { llamaServer } from './llama-server.ts'
import { engineSettings, type Preset } from './preset.ts'
import { remote } from './remote.ts'
import { vllm } from './vllm.ts'
import { whisperServer } from './whisper-server.ts'

/** Every kind of engine, by the name that `engine:` in infer.yaml uses. */
export const presets: ReadonlyMap<string, Preset> = new Map(
  [gguf, llamaServer, vllm, whisperServer, custom, remote, demo].map(preset => [preset.name, preset]),
)

/**
 * The preset of a model. Throws Failure `invalid_value` that names the model, when there is none of that name, the
 * model lacks what the preset cannot do without, or it is for a task that the engine has no way to do.
 */
export function presetOf(model: Model): Preset {
  const preset = presets.get(model.engine)
  const wrong = (message: string) => new Failure('invalid_value', `Model '${model.id}': ${message}`)
  if (!preset) throw wrong(`there is no engine '${model.engine}'. Known: ${[...presets.keys()].join(', ')}.`)
  const foreign = engineSettings.find(field => model[field] !== undefined && !preset.settings?.includes(field))
  if (foreign) throw wrong(`'${foreign}' means nothing to the engine '${preset.name}'. Use 'args' for its own options.`)
  const lacks = preset.lacks(model)
  if (lacks) throw wrong(`the engine '${preset.name}' cannot run it: ${lacks}`)
  if (!preset.sandbox && (model.sandbox ?? 'none') !== 'none')
    throw wrong(`'sandbox' means nothing to the engine '${preset.name}', which infer does not start.`)
  if (model.sandbox === 'strict' && preset.channel(model) !== 'socket')
    throw wrong(
      "'sandbox: strict' takes the network away, and this engine listens on a port. Let it listen on a Unix socket ({socket} in 'command'), or choose 'sandbox: files'.",
    )
  const { routes, scoreBy } = preset.traits(model)
  // Scores can be had by other means than a path of their own.
  const able = (task: Task) =>
    (routes[task] ?? (task === 'std/score' ? routes[`std/${scoreBy}`] : undefined)) !== undefined
  // Pictures in other words are asked of it by the tasks that it has besides.
  const unable = model.tasks.find(task => impliedBy[task] === undefined && !able(task))
  if (unable) {
    const known = tasks.filter(able).join(', ')
    throw wrong(`the engine '${preset.name}' cannot do '${unable}'. In 'tasks' it can have: ${known}.`)
  }
  return preset
}

/** What the engine of this model can do. Pure data; starts nothing. Throws as `presetOf`. */
export const traitsOf = (model: Model): EngineTraits => presetOf(model).traits(model)
