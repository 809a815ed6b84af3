import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { ModelEntry } from '../../core/models/edit.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { type GgufHeader, readGgufHeader } from '../../core/models/gguf-header.ts'
import { Model } from '../../core/models/model.ts'
import { idFrom, purposeOf, slugOf } from '../../core/models/propose.ts'
import { recogniseGguf } from '../../core/models/recognition/recognise-file.ts'
import { parsed } from '../../core/schemas/issues.ts'
import type { Task } from '../../core/schemas/task.ts'
import { wantedContext } from '../../gpu/engines/gguf/sizing.ts'
import { estimate, type MemoryEstimate, planMemory } from '../../gpu/estimate/estimate.ts'
import { longerContextsOf } from '../../gpu/estimate/longer-context.ts'
import { checkHeader } from '../../gpu/estimate/source-check.ts'
import type { PlacementTarget } from '../../gpu/estimate/target.ts'
import { gpuSetup } from '../../gpu/placement/engine-placement.ts'
import { generates } from '../../gpu/presets/preset.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { installAdvice, isInstalled, openPlacementTargets } from './engine-programs.ts'
import type { Located } from './locate.ts'

/** Settings that are given and not proposed. */
export interface GivenSettings {
  id?: string | undefined
  task?: Task[] | undefined
  context?: number | undefined
  concurrency?: number | undefined
  engine?: string | undefined
  memory?: string | undefined
  devices?: number | undefined
  /** Folder or address of the ComfyUI that runs a graph. */
  comfyui?: string | undefined
}

export interface ProposalContext {
  /** Ids that other models have. */
  taken: ReadonlySet<string>
  dataDir: string
}

/** A proposed entry for infer.yaml, with explanations. */
export interface Proposal {
  entry: ModelEntry
  /** Explanations for the user: subject and text. */
  facts: [about: string, text: string][]
  /** Bytes; null when unknown. */
  memory: number | null
  /** Why it cannot run here, as a sentence; null when it can. */
  obstacle: string | null
  /** Whether the obstacle is that this machine lacks the memory or the GPU for it. */
  doesNotFit?: boolean
  /** What else to install or to configure before it runs, as sentences. */
  advice: string[]
}

/**
 * Proposes id, tasks, context and memory of a model from its files and this machine. Given settings take precedence.
 * Throws Failure for files that are not a model, and for settings that no engine accepts.
 */
export async function propose(located: Located, given: GivenSettings, around: ProposalContext): Promise<Proposal> {
  const { kind, recognition } = located
  if (kind === 'graph') {
    const { proposeGraph } = await import('./graph-proposal.ts')
    return proposeGraph(located, given, around)
  }
  if (recognition) {
    const { proposeRecognised } = await import('./propose-recognised.ts')
    return proposeRecognised(located, recognition, given, around)
  }
  return kind === 'gguf' ? proposeGguf(located, given, around) : proposeUnknown(located, given, around)
}

async function proposeGguf(located: Located, given: GivenSettings, around: ProposalContext): Promise<Proposal> {
  const { path, names, header: known } = located
  const { taken, dataDir } = around
  const header = known ?? (await readGgufHeader(path))
  const other = recogniseGguf(path, header)
  if (other) {
    const { proposeRecognised } = await import('./propose-recognised.ts')
    return proposeRecognised({ ...located, names: [...names, header.name ?? ''] }, other, given, around)
  }
  const purpose = purposeOf(header)
  if (!purpose)
    throw new Failure(
      'invalid_value',
      `'${path}' is not a model, but ${article(header.kind)} that belongs to one. ${header.kind === 'adapter' ? 'Add that model first, then this file: infer model add <file> --adapter-of <id>' : 'Add the model itself, with llama-server as its engine if it needs this file.'}`,
    )
  const { engine, args, advice } = withProjector(located, given, dataDir)
  const entry: ModelEntry = {
    id: given.id ?? idFrom([...names, header.name], header.quantization, taken),
    ...(engine === undefined ? {} : { engine }),
    source: path,
    tasks: given.task ?? purpose.tasks,
    ...proposalLimits(given),
    ...(args === undefined ? {} : { args: [...args] }),
  }
  const model = parsed(Model, entry)
  const { fault, mistakes, warnings } = await checkHeader(header, model)
  const wrong = fault?.text ?? mistakes[0]
  if (wrong !== undefined) throw new Failure('invalid_value', `'${path}' cannot be added: ${wrong}`)
  const room = await openPlacementTargets(dataDir).targetFor(model)
  const { bytes, plan, devices = 1, longer } = await planMemory({ ...model, memory: undefined }, room, { header })
  const where = { dataDir, path: hostEnvironment().PATH ?? '', tasks: model.tasks }
  const isMissing = engine !== undefined && !isInstalled(engine, where)
  const missing = isMissing ? [installAdvice(engine, model.tasks)] : []
  const sizing = plan.layout ?? null
  const least = bytes ?? 0
  const memory = model.memory ?? least
  const context = sizing && (generates(model) ? sizing.context : sizing.encoderContext)
  // Where further cards make it longer, the server chooses it at each load.
  if (given.context === undefined && context !== null && !longer) entry.context_length = context
  // Further cards are named with the context.
  const longerContext = await longerContextsOf(
    { ...model, context_length: entry.context_length },
    room,
    { bytes, plan, devices },
    () => Promise.resolve(header),
  )
  const parts = header.splitCount > 1 ? `${header.splitCount} files, ` : ''
  return {
    entry,
    memory,
    obstacle: sizing ? null : misfit(least, room, 'A smaller --context or --concurrency may help.'),
    doesNotFit: sizing === null,
    advice: [...missing, ...advice, ...warnings, ...(room.needsSetup ? [setupAdvice] : []), ...longerContext],
    facts: [
      ['source', path],
      [
        'is',
        `${header.architecture}, ${countText(header.parameterCount)} parameters, ${parts}${header.quantization ?? 'unknown quantization'}, ${sizeText(header.tensorBytes)}`,
      ],
      ...(engine === undefined
        ? []
        : [['engine', `${engine}${isMissing ? ' (not installed)' : ''}`] as [string, string]]),
      ['tasks', `${model.tasks.join(', ')}${given.task ? '' : `: ${purpose.because}`}`],
      [
        'context',
        contextText(header, given, context, generates(model) ? (sizing?.parallel ?? room.slots) : room.slots, longer),
      ],
      [
        'memory',
        sizing
          ? `${sizeText(memory)}${onGpus(devices)}: ${sizeText(sizing.need.weights)} weights, ${sizing.need.cache > 0 ? `${sizeText(sizing.need.cache)} cache, ` : ''}the rest for the engine`
          : `${sizeText(memory)} at least`,
      ],
    ],
  }
}

/** Proposes an entry for a file of an unknown kind, whose engine and tasks are given. */
async function proposeUnknown(
  { path, names }: Located,
  given: GivenSettings,
  { taken, dataDir }: ProposalContext,
): Promise<Proposal> {
  const { engine, task } = given
  if (engine === undefined || task === undefined)
    throw new Failure(
      'invalid_value',
      `'${path}' is not a model that infer knows. Give the engine that reads it and its task: --engine --task`,
    )
  const entry: ModelEntry = {
    id: given.id ?? idFrom(names, null, taken),
    engine,
    source: path,
    tasks: task,
    ...proposalLimits(given),
  }
  const model = parsed(Model, entry)
  const room = await openPlacementTargets(dataDir).targetFor(model)
  const memory = await estimate(model, room)
  const obstacle = tooLarge(memory, room)
  return {
    entry,
    memory,
    obstacle,
    doesNotFit: obstacle !== null,
    advice: [],
    facts: [
      ['source', path],
      ['engine', model.engine],
      ['tasks', model.tasks.join(', ')],
      ['memory', memory === null ? 'unknown' : `${sizeText(memory)}, estimated from the size of its file`],
    ],
  }
}

const setupAdvice = `It runs on the processor until the GPUs are set up: ${gpuSetup}`

/** Says among how many GPUs a model is divided. */
export const onGpus = (devices: number): string => (devices > 1 ? ` on ${devices} GPUs` : '')

/** Bytes that the model may have on all devices together. */
const availableIn = ({ capacity, devices, cards }: PlacementTarget): number =>
  cards?.reduce((sum, bytes) => sum + bytes, 0) ?? capacity * devices

const misfit = (bytes: number, room: PlacementTarget, less: string) =>
  `It does not fit: it needs at least ${sizeText(bytes)}, and ${sizeText(availableIn(room))} are available here. ${less}`

/**
 * Why a model does not fit on this machine that needs so much memory by the size of its files, as a sentence; null if it
 * fits.
 */
export const tooLarge = (bytes: number | null, room: PlacementTarget): string | null =>
  bytes === null || bytes <= availableIn(room) ? null : misfit(bytes, room, 'If it needs less, say so with --memory.')

/** The context and where it comes from: what was given, what the model was trained for, or what the memory allows. */
function contextText(
  header: Pick<GgufHeader, 'codes' | 'contextLength'>,
  { context: given }: GivenSettings,
  context: number | null,
  requests: number,
  longer?: MemoryEstimate['longer'],
): string {
  const { contextLength: trained } = header
  if (context === null) return trained === null ? 'unknown' : `unknown (trained for ${trained})`
  const text = `${context} tokens for each of ${requests} ${requests === 1 ? 'request' : 'requests'} at a time`
  if (trained === null || context >= trained) return text
  if (longer) return `${text}; ${longer.layout.context} where ${longer.devices} GPUs are free (trained for ${trained})`
  const cut = context < wantedContext(header) ? 'the memory has no room for more' : '--context for more'
  return `${text} (trained for ${trained}${given === undefined ? `; ${cut}` : ''})`
}

/** Settings that are written as they are given. */
export const proposalLimits = ({ context, concurrency, memory, devices }: GivenSettings) => ({
  ...(context === undefined ? {} : { context_length: context }),
  ...(concurrency === undefined ? {} : { concurrency }),
  ...(memory === undefined ? {} : { memory }),
  ...(devices === undefined ? {} : { devices }),
})

const article = (kind: string): string => (/^[aeiou]/i.test(kind) ? `an '${kind}'` : `a '${kind}'`)

/** Formats a parameter count: `8.2 billion`. */
function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} billion`
  if (count >= 1e6) return `${Math.round(count / 1e6)} million`
  return String(count)
}

const isProjector = (name: string): boolean => /(^|[-_./])mmproj([-_.]|$)/i.test(name) && /\.gguf$/i.test(name)

/** Formats of image encoders, the most exact that are common first. */
const formats = ['f16', 'bf16', 'q8_0', 'f32']

/** Returns the image encoder among the files of a model; undefined if there is none. */
export function chooseProjector(names: readonly string[]): string | undefined {
  const rank = (name: string) => {
    const at = formats.findIndex(format => new RegExp(`(^|[-_.])${format}([-_.]|$)`, 'i').test(basename(name)))
    return at < 0 ? formats.length : at
  }
  return names.filter(isProjector).toSorted((a, b) => rank(a) - rank(b))[0]
}

/** Whether llama-server will run a GGUF model with an image encoder, because it is chosen or installed. */
export const usesLlamaServer = ({ engine }: GivenSettings, dataDir: string): boolean =>
  engineFacts(engine).takesProjector === true ||
  (engine === undefined && isInstalled('llama-server', { dataDir, path: hostEnvironment().PATH ?? '', tasks: [] }))

/**
 * Returns the engine of a GGUF model and its arguments: llama-server with the image encoder that was downloaded with the
 * model or lies beside it, if llama-server is there. The built-in engine, for which `engine` is absent, reads no images.
 */
function withProjector(
  { path, args }: Located,
  given: GivenSettings,
  dataDir: string,
): { engine?: string; args?: readonly string[]; advice: string[] } {
  const engine = given.engine === undefined ? {} : { engine: given.engine }
  const projector = args?.includes('--mmproj') ? undefined : besideOf(path)
  if (projector === undefined) {
    const needed = args?.includes('--mmproj') && given.engine === undefined ? { engine: 'llama-server' } : engine
    return { ...needed, ...(args === undefined ? {} : { args }), advice: [] }
  }
  if (usesLlamaServer(given, dataDir))
    return { engine: 'llama-server', args: [...(args ?? []), '--mmproj', projector], advice: [] }
  return {
    ...engine,
    ...(args === undefined ? {} : { args }),
    advice:
      given.engine === undefined
        ? [
            `'${projector}' lets this model read images, with the engine llama-server only. ${installAdvice('llama-server', [])}`,
          ]
        : [],
  }
}

/** Returns the image encoder beside a local model, if the folder has files of this model only. */
function besideOf(path: string): string | undefined {
  let names: string[]
  try {
    names = readdirSync(dirname(path)).filter(name => /\.gguf$/i.test(name))
  } catch {
    return undefined
  }
  const models = new Set(names.filter(name => !isProjector(name)).map(name => slugOf(name) ?? name))
  const projector = models.size === 1 ? chooseProjector(names) : undefined
  return projector === undefined ? undefined : join(dirname(path), projector)
}
