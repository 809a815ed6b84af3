import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import { openLog } from '../../core/log.ts'
import type { ModelEntry } from '../../core/models/edit.ts'
import { readGgufHeader } from '../../core/models/gguf-header.ts'
import { Model } from '../../core/models/model.ts'
import { idFrom, purposeOf, purposeOfFolder } from '../../core/models/propose.ts'
import type { Task } from '../../core/schemas/task.ts'
import { openCardBackends } from '../../gpu/card-backend.ts'
import { cpuDevice } from '../../gpu/devices/cpu.ts'
import { discover } from '../../gpu/devices/discover.ts'
import { estimate, ggufNeed, type PlacementTarget } from '../../gpu/estimate.ts'
import { probeWrapper } from '../../gpu/launcher/probe.ts'
import { bookable } from '../../gpu/memory.ts'
import { generates } from '../../gpu/presets/preset.ts'
import { presetOf } from '../../gpu/presets/presets.ts'
import { sizeText } from '../quantities-text.ts'
import type { Located } from './locate.ts'

/** What the operator has said himself. */
export interface GivenSettings {
  id?: string | undefined
  task?: Task[] | undefined
  context?: number | undefined
  concurrency?: number | undefined
  engine?: string | undefined
  memory?: string | undefined
}

export interface ProposalContext {
  /** Ids that other models have. */
  taken: ReadonlySet<string>
  dataDir: string
}

/** An entry for infer.yaml, and why it says what it says. */
export interface Proposal {
  entry: ModelEntry
  /** Lines for a person: what they are about, and what they say. */
  facts: [about: string, text: string][]
  /** Bytes; null when nobody can tell. */
  memory: number | null
  /** Why it will not run here, as a sentence; null when it will. */
  obstacle: string | null
}

/**
 * Proposes how to offer a model: id, tasks, context and memory from what its files say and this machine has; what was
 * said by hand stands. Throws Failure for what is no model, and for settings that no engine takes.
 */
export async function propose(located: Located, given: GivenSettings, around: ProposalContext): Promise<Proposal> {
  return located.kind === 'gguf' ? proposeFile(located, given, around) : proposeFolder(located, given, around)
}

async function proposeFile(
  { path, names, header: known }: Located,
  given: GivenSettings,
  { taken, dataDir }: ProposalContext,
): Promise<Proposal> {
  const header = known ?? (await readGgufHeader(path))
  const purpose = purposeOf(header)
  if (!purpose)
    throw new Failure(
      'invalid_value',
      `'${path}' is no model by itself, but ${article(header.kind)} that belongs to one. Add the model, with llama-server as its engine if it needs this.`,
    )
  const entry: ModelEntry = {
    id: given.id ?? idFrom([...names, header.name], header.quantization, taken),
    ...engineOf(given, 'gguf'),
    source: path,
    tasks: given.task ?? purpose.tasks,
    ...limitsOf(given),
  }
  const model = Model.parse(entry)
  const room = await roomFor(model, dataDir)
  const { bytes, sizing } = ggufNeed(header, model, room)
  const memory = model.memory ?? bytes
  const context = sizing && (generates(model) ? sizing.context : sizing.encoderContext)
  if (given.context === undefined && context !== null) entry.context_length = context
  const parts = header.splitCount > 1 ? `${header.splitCount} files, ` : ''
  const trained = header.contextLength === null ? '' : ` (trained for ${header.contextLength})`
  return {
    entry,
    memory,
    obstacle: sizing
      ? null
      : `It does not fit: it takes ${sizeText(bytes)} at the least, and ${sizeText(room.capacity * room.devices)} can be had here. A smaller --context or --concurrency may help.`,
    facts: [
      ['source', path],
      [
        'is',
        `${header.architecture}, ${countText(header.parameterCount)} parameters, ${parts}${header.quantization ?? 'unknown quantization'}, ${sizeText(header.tensorBytes)}`,
      ],
      ['tasks', `${model.tasks.join(', ')}${given.task ? '' : `: ${purpose.because}`}`],
      [
        'context',
        context === null ? `unknown${trained}` : `${context} tokens for each of ${room.slots} requests${trained}`,
      ],
      [
        'memory',
        sizing
          ? `${sizeText(memory)}: ${sizeText(sizing.need.weights)} of weights, ${sizing.need.cache > 0 ? `${sizeText(sizing.need.cache)} of cache, ` : ''}the rest for the engine`
          : `${sizeText(memory)} at the least`,
      ],
    ],
  }
}

async function proposeFolder(
  { path, names }: Located,
  given: GivenSettings,
  { taken, dataDir }: ProposalContext,
): Promise<Proposal> {
  const config = readJson(join(path, 'config.json'))
  const purpose = purposeOfFolder(config, { pools: existsSync(join(path, 'modules.json')) })
  const entry: ModelEntry = {
    id: given.id ?? idFrom(names, null, taken),
    ...engineOf(given, 'vllm'),
    source: path,
    tasks: given.task ?? purpose.tasks,
    ...limitsOf(given),
  }
  const model = Model.parse(entry)
  const room = await roomFor(model, dataDir)
  const memory = await estimate(model, room)
  const { max_position_embeddings: trained } = (config ?? {}) as { max_position_embeddings?: unknown }
  const lacking = room.kind === 'nvidia' && room.capacity === 0
  return {
    entry,
    memory,
    obstacle: lacking ? `The engine '${model.engine}' needs a GPU, and none was found here.` : null,
    facts: [
      ['source', path],
      ['engine', model.engine],
      ['tasks', `${model.tasks.join(', ')}${given.task ? '' : `: ${purpose.because}`}`],
      [
        'context',
        model.context_length
          ? String(model.context_length)
          : `the engine's choice${typeof trained === 'number' ? ` (trained for ${trained})` : ''}`,
      ],
      ['memory', memory === null ? 'unknown' : `${sizeText(memory)}, by the size of its files`],
    ],
  }
}

const engineOf = ({ engine }: GivenSettings, usual: string) =>
  engine === undefined && usual === 'gguf' ? {} : { engine: engine ?? usual }

const limitsOf = ({ context, concurrency, memory }: GivenSettings) => ({
  ...(context === undefined ? {} : { context_length: context }),
  ...(concurrency === undefined ? {} : { concurrency }),
  ...(memory === undefined ? {} : { memory }),
})

/** Where it will be placed on this machine, as the server decides it. */
async function roomFor(model: Model, dataDir: string): Promise<PlacementTarget> {
  const preset = presetOf(model)
  const slots = model.concurrency ?? preset.slots
  const environment = hostEnvironment()
  const cards = preset.runsOn === 'cpu' || model.devices === 'cpu' ? [] : (await discover({ environment })).devices
  const memory = { devices: () => cards }
  const log = openLog('error', () => undefined)
  const { wrapper } = await probeWrapper(environment)
  const usable =
    !preset.needsBackend || (await openCardBackends({ dataDir, environment, wrapper, memory, log }).of(model)) !== null
  if (preset.runsOn === 'gpu' || (cards.length > 0 && usable)) {
    const capacity = Math.max(0, ...cards.map(({ totalBytes }) => Math.floor(totalBytes * bookable.nvidia)))
    return { kind: 'nvidia', devices: typeof model.devices === 'number' ? model.devices : 1, capacity, slots }
  }
  return { kind: 'cpu', devices: 1, capacity: Math.floor(cpuDevice().totalBytes * bookable.cpu), slots }
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new Failure('invalid_value', `'${path}' cannot be read: ${(cause as Error).message}.`)
  }
}

const article = (kind: string): string => (/^[aeiou]/i.test(kind) ? `an '${kind}'` : `a '${kind}'`)

/** `8.2 billion`, as people speak of models. */
function countText(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} billion`
  if (count >= 1e6) return `${Math.round(count / 1e6)} million`
  return String(count)
}
