import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { ModelEntry } from '../../core/models/edit.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { GenerationDefaults } from '../../core/models/generation-defaults.ts'
import { Model } from '../../core/models/model.ts'
import { idFrom } from '../../core/models/propose.ts'
import { distilledDefaults, type FamilyDefaults } from '../../core/models/recognition/diffusion-families.ts'
import { findCompanions } from '../../core/models/recognition/recognise-file.ts'
import { chooseEngine, type Recognition, suggestedEngines } from '../../core/models/recognition/recognition.ts'
import { parsed } from '../../core/schemas/issues.ts'
import type { Task } from '../../core/schemas/task.ts'
import { type MemoryPlan, planMemory } from '../../gpu/estimate/estimate.ts'
import { presetOf, presets } from '../../gpu/presets/presets.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { installAdvice, isInstalled, openPlacementTargets } from './engine-programs.ts'
import type { Located } from './locate.ts'
import {
  type GivenSettings,
  onGpus,
  type Proposal,
  type ProposalContext,
  proposalLimits,
  tooLarge,
} from './proposal.ts'

/**
 * Proposes an entry for a model that is not a text model in a GGUF file. The engine is one that is installed, if any
 * that can run the model is. Throws Failure if infer has no engine for it, or for settings that the engine refuses.
 */
export async function proposeRecognised(
  located: Located,
  recognition: Recognition,
  given: GivenSettings,
  { taken, dataDir }: ProposalContext,
): Promise<Proposal> {
  const path = recognition.file === undefined ? located.path : join(located.path, recognition.file)
  const targets = openPlacementTargets(dataDir)
  const gpus = (await targets.cards()).length
  const { engine, advice } = engineFor(recognition, given, { dataDir, gpus })
  const names = [...(recognition.id === undefined ? [] : [recognition.id]), ...located.names]
  const defaults = recognition.defaults && distilledDefaults(recognition.defaults, located.names)
  const further = engineFacts(engine).takesCompanions ? sdServerFiles(path, recognition) : { args: [], missing: [] }
  const entry: ModelEntry = {
    id: given.id ?? idFrom(names, null, taken),
    engine,
    source: path,
    tasks: given.task ?? tasksOn(engine, recognition),
    ...proposalLimits(given),
    ...(defaults === undefined ? {} : { generation_defaults: withinBounds(defaults) }),
    ...(recognition.inputImages === undefined ? {} : { input_images: recognition.inputImages }),
    ...(further.args.length > 0 ? { args: further.args } : {}),
  }
  const model = parsed(Model, entry)
  const room = await targets.targetFor(model)
  const known = { shape: recognition.shape, bytes: located.bytes }
  const { bytes: memory, plan, devices = 1 } = await planMemory(model, room, known)
  const { paged } = plan
  const needsGpu = room.kind === 'gpu' && room.capacity === 0
  const neverFits = paged?.reason !== undefined && paged.maxLength === undefined
  const obstacle = needsGpu
    ? `The engine '${model.engine}' needs a GPU, and none was found here.`
    : neverFits
      ? `It does not fit. ${paged.reason}`
      : tooLarge(memory, room)
  return {
    entry,
    memory,
    obstacle,
    doesNotFit: obstacle !== null,
    advice: [...advice, ...further.missing, ...(paged?.maxLength !== undefined && !needsGpu ? [paged.reason!] : [])],
    facts: [
      ['source', path],
      ['is', `${recognition.is}${located.bytes === undefined ? '' : `, ${sizeText(located.bytes)}`}`],
      ['engine', `${model.engine}${advice.length > 0 ? ' (not installed)' : ''}`],
      ['tasks', `${entry.tasks!.join(', ')}${given.task ? '' : `: ${recognition.because}`}`],
      ...(defaults ? [['defaults', defaultsText(defaults)] as [string, string]] : []),
      ...(recognition.contextLength !== undefined
        ? [['context', contextText(model, recognition.contextLength, paged?.maxLength)] as [string, string]]
        : []),
      ['memory', memory === null ? 'unknown' : `${sizeText(memory)}${onGpus(devices)}, ${memorySource(model, plan)}`],
    ],
  }
}

function engineFor(
  recognition: Recognition,
  given: GivenSettings,
  { dataDir, gpus }: { dataDir: string; gpus: number },
): { engine: string; advice: string[] } {
  const { is, engines } = recognition
  const tasks = given.task ?? recognition.tasks
  const found = { dataDir, path: hostEnvironment().PATH ?? '', tasks }
  if (given.engine !== undefined) {
    const named = suggestedEngines.find(one => one === given.engine)
    return {
      engine: given.engine,
      advice: named === undefined || isInstalled(named, found) ? [] : [installAdvice(named, tasks)],
    }
  }
  const choice = chooseEngine(engines, {
    isKnown: name => presets.has(name) && supported(name, tasks).length > 0,
    isInstalled: name => isInstalled(name, found),
    runsHere: name => presets.get(name)!.runsOn !== 'gpu' || gpus > 0,
  })
  if (!choice)
    throw new Failure(
      'unsupported_task',
      `This is ${is}. It runs with ${engines.join(' or ')}, and this version of infer starts none of them. See: infer help engines`,
    )
  return { engine: choice.engine, advice: choice.isInstalled ? [] : [installAdvice(choice.engine, tasks)] }
}

/** Returns the tasks of a model on an engine. */
const tasksOn = (engine: string, { tasks, tasksOn: fewer }: Recognition): Task[] =>
  supported(engine, Object.entries(fewer ?? {}).find(([name]) => name === engine)?.[1] ?? tasks)

/** Returns those of the tasks that infer can do with an engine. */
function supported(engine: string, tasks: readonly Task[]): Task[] {
  return tasks.filter(task => {
    try {
      return presetOf(Model.parse({ id: 'x', engine, source: '/x', tasks: [task] })) !== undefined
    } catch (thrown) {
      if (thrown instanceof Failure) return false
      throw thrown
    }
  })
}

/** Returns the arguments of sd-server for a file and those beside it, and a sentence about each missing file. */
function sdServerFiles(path: string, { companions = [], isDiffusionOnly }: Recognition) {
  const beside = filesBeside(path).map(name => join(dirname(path), name))
  const found = findCompanions(
    companions,
    beside.filter(one => one !== path),
  )
  const option = isDiffusionOnly ? '--diffusion-model' : '-m'
  return {
    args: isDiffusionOnly || found.args.length > 0 ? [option, path, ...found.args] : [],
    missing: found.missing.map(
      ({ option, is }) =>
        `It also needs ${is}, which is not beside it. Add its path to 'args' of the model in infer.yaml: ${option} /path/to/file`,
    ),
  }
}

function filesBeside(path: string): string[] {
  try {
    return readdirSync(dirname(path))
  } catch {
    return []
  }
}

/** Returns the defaults within the bounds of requests. */
const withinBounds = ({ num_inference_steps, guidance_scale, ...others }: FamilyDefaults): GenerationDefaults => ({
  num_inference_steps: Math.min(num_inference_steps, 50),
  guidance_scale: Math.min(guidance_scale, 20),
  ...others,
})

function defaultsText(defaults: FamilyDefaults): string {
  const { num_inference_steps: steps, guidance_scale: guidance, width, height, num_frames: frames, fps } = defaults
  const video = frames === undefined ? '' : `, ${frames} frames at ${fps} per second`
  return `${width}×${height}${video}, ${steps} steps, guidance ${guidance}`
}

const contextText = ({ context_length: given }: Model, trained: number | null, fitting?: number): string =>
  given !== undefined
    ? String(given)
    : `${fitting ?? "the engine's choice"}${trained === null ? '' : ` (trained for ${trained})`}`

const memorySource = ({ memory }: Model, { paged }: MemoryPlan): string => {
  if (memory !== undefined) return 'as given'
  return paged
    ? 'weights, the cache of one request of full length, and buffers'
    : 'estimated from the size of its files'
}
