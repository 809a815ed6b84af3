import { Failure } from '../../core/failure.ts'
import type { ModelEntry } from '../../core/models/edit.ts'
import { readGgufHeader } from '../../core/models/gguf-header.ts'
import { Model } from '../../core/models/model.ts'
import { idFrom, purposeOf } from '../../core/models/propose.ts'
import { recogniseGguf } from '../../core/models/recognition/recognise-file.ts'
import type { Task } from '../../core/schemas/task.ts'
import { estimate, ggufNeed } from '../../gpu/estimate/estimate.ts'
import { generates } from '../../gpu/presets/preset.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Located } from './locate.ts'
import { openPlacementTargets } from './placement-targets.ts'
import { withProjector } from './projector.ts'

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
      `'${path}' is not a model, but ${article(header.kind)} that belongs to one. Add the model itself, with llama-server as its engine if it needs this file.`,
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
  const model = Model.parse(entry)
  const room = await openPlacementTargets(dataDir).targetFor(model)
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
      : `It does not fit: it needs at least ${sizeText(bytes)}, and ${sizeText(room.capacity * room.devices)} are available here. A smaller --context or --concurrency may help.`,
    advice,
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
          ? `${sizeText(memory)}: ${sizeText(sizing.need.weights)} weights, ${sizing.need.cache > 0 ? `${sizeText(sizing.need.cache)} cache, ` : ''}the rest for the engine`
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
  const model = Model.parse(entry)
  const memory = await estimate(model, await openPlacementTargets(dataDir).targetFor(model))
  return {
    entry,
    memory,
    obstacle: null,
    advice: [],
    facts: [
      ['source', path],
      ['engine', model.engine],
      ['tasks', model.tasks.join(', ')],
      ['memory', memory === null ? 'unknown' : `${sizeText(memory)}, estimated from the size of its file`],
    ],
  }
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
