import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import { dataDirectory, hostEnvironment, remoteServer } from '../../core/config.ts'
import { Failure, invalidValue } from '../../core/failure.ts'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile, previewConfigEdit } from '../../core/models/config-file.ts'
import { addModel, type ModelEntry, offerToys } from '../../core/models/edit.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { modelIdPattern } from '../../core/models/model-id.ts'
import { namesOf } from '../../core/models/model-names.ts'
import { Bytes, sizeAdvice } from '../../core/quantities.ts'
import { modelTasks, type Task } from '../../core/schemas/task.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { shellWord } from '../serve/try-next.ts'
import { failureOfThrown, refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, readCount, readList, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Located, LocateTools } from './locate.ts'
import type { GivenSettings, Proposal } from './proposal.ts'
import { openPullDisplay, withDownload, withTokenFile } from './pull.ts'
import { isOffered } from './status.ts'

export interface AddOptions extends GivenSettings, CommonOptions {
  /** The base model of a LoRA adapter. */
  adapterOf?: string
  yes?: boolean
  /** Add it although it does not fit this machine. */
  force?: boolean
  config?: string
  tokenFile?: string
  /** Print what would be written, and write nothing. */
  dryRun?: boolean
  /** Print the progress as JSON, and ask nothing: for a server that runs this command. */
  events?: boolean
  /** Keep offering the toy models if no other model is configured. */
  toys?: boolean
  /** The server starts immediately after this. */
  isStarting?: boolean
}

/** What is offered to a user at a terminal when it is not installed. */
interface Offers {
  /** The backend with which the built-in engine uses the GPUs. */
  offerBackend?: (dataDir: string, signal: AbortSignal) => Promise<void>
  /** The engine of the added model. */
  offerEngine?: (of: { engine: string; tasks: readonly Task[]; dataDir: string }, signal: AbortSignal) => Promise<void>
}

/** Options of a model that is added to the data directory of this machine. */
type LocalAddOptions = AddOptions &
  Pick<Offers, 'offerEngine'> & {
    dataDir: string
    /** Accepts the proposal without a question, unless there is an obstacle. */
    withoutQuestion?: boolean
  }

/** `infer model add <model>`: reads a model's files, proposes an entry for infer.yaml, and writes it. */
export function define(command: Command, terminal: Terminal, offers: Offers): void {
  const add = withTokenFile(withCommon(command))
    .summary('offer a model of your own')
    .description(
      'Reads the files of a model, proposes settings, and adds the model to infer.yaml, whose comments stay. Recognises text, image, video, speech and transcription models by their files, and chooses an engine that can run the model, an installed one if there is one. Downloads files that are not on this machine. For a short name of the catalog (infer model catalog) engine and quantization are chosen by what fits this machine. A running server takes the model up by itself. With INFER_URL that server downloads the model and adds it: one of the catalog or of a hub, or a LoRA on its machine.',
    )
    .argument(
      '<model>',
      'a short name of the catalog, owner/name[:file] of a hub (with hf: if there is such a folder here), a file (.gguf, .safetensors, Whisper, a voice), the folder of a model or of a diffusers pipeline, comfyui:<graph file>, or a URL',
    )
    .option('--id <id>', 'the id under which it is offered')
    .option('--task <tasks>', `tasks of the model, separated by commas: ${modelTasks.join(', ')}`, readTasks)
    .option('--context <tokens>', 'maximum length of prompt and answer together', readCount(16, 2 ** 24))
    .option('--concurrency <count>', 'maximum concurrent requests', readCount(1, 4096))
    .option('--engine <name>', 'engine that runs it; default: one that is installed')
    .option('--memory <size>', 'device memory to book instead of the estimate, such as 24GB', readSize)
    .option('--adapter-of <id>', 'add a LoRA as an adapter of this model: a GGUF file, or a folder for vllm and sglang')
    .option('--comfyui <where>', 'folder of the ComfyUI that runs the graph, or its address')
    .option('--config <path>', 'the file to add it to; default: infer.yaml in the data directory')
    .option('--dry-run', 'print the lines that would be added to the file, and change nothing')
    .option('-y, --yes', 'do not ask')
    .option('--force', 'add it although it does not fit this machine')
    .addOption(new Option('--events', 'print the progress as JSON, one object per line').hideHelp())
    .action((what, options) => {
      const given = { ...options, withoutQuestion: options.events === true }
      return interruptible(terminal, signal => addAnywhere(what, given, terminal, signal, offers))
    })
  withExamples(add, [
    ['infer model add qwen3-8b', 'from the catalog, in the quantization that fits'],
    ['infer model add starter', 'a small real chat model, 100 MB'],
    ['infer model add qwen3-8b --dry-run', 'only show what would be written'],
    ['infer model add ~/models/qwen3-8b-q4_k_m.gguf', 'a file'],
    ['infer model add Qwen/Qwen3-8B-GGUF', 'from a hub, the best file for most machines'],
    ['infer model add meta-llama/Llama-3.1-8B-Instruct', 'for vLLM; says how to install it'],
    ['infer model add comfyui:flux.json --comfyui /opt/ComfyUI', 'a graph that was exported in API format'],
    ['infer model add ~/models/flux1-dev-Q8_0.gguf', 'an image model, for sd-server'],
    ['infer model add ./support.gguf --adapter-of qwen3-8b', 'a LoRA, as a model of its base'],
    ['infer model add hf:owner/name:Q8_0 --id mine --context 16384 --yes', 'with your settings, without a question'],
  ])
}

/** Adds a model to the server at INFER_URL, or to the data directory of this machine. */
export async function addAnywhere(
  what: string,
  options: AddOptions & { withoutQuestion?: boolean },
  terminal: Terminal,
  signal: AbortSignal,
  { offerBackend, offerEngine }: Offers = {},
): Promise<void> {
  const { asReference } = await import('./locate.ts')
  const model = asReference(what)
  if (options.dataDir === undefined && remoteServer()) {
    const { addElsewhere } = await import('./elsewhere.ts')
    return addElsewhere(model, options, terminal, signal)
  }
  const dataDir = dataDirectory(options.dataDir)
  const { adapterOf } = options
  if (adapterOf !== undefined) {
    const { addAdapter } = await import('./add-adapter.ts')
    return addAdapter(what, { ...options, adapterOf, dataDir }, terminal, signal)
  }
  // Before the settings are chosen, which depend on where the model will run.
  if (!options.json && !options.dryRun && !options.withoutQuestion && (options.engine ?? 'gguf') === 'gguf')
    await offerBackend?.(dataDir, signal)
  return addByName(model, { ...options, dataDir, offerEngine }, terminal, signal)
}

/** A model of the catalog with chosen engine and quantization. */
interface ChosenModel {
  locate: (tools: LocateTools) => Promise<Located>
  /** Whether the user chose the id. Otherwise it is the short name. */
  hasOwnId: boolean
  /** The choice and its reason, for `--json`. */
  json?: object
}

/**
 * Adds a model by its short name in the catalog, or by anything that `addOne` takes. An existing file takes precedence.
 */
export async function addByName(
  what: string,
  options: LocalAddOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { id } = options
  if (id !== undefined && !(modelIdPattern.test(id) && id.length <= 128))
    throw invalidValue(
      `'${id}' is not a valid value of --id. Write letters, digits and . _ : - (at most 128), with / between parts.`,
    )
  if (what.startsWith('comfyui:')) {
    const { locateGraph } = await import('./graph-proposal.ts')
    const located = locateGraph(what)
    const chosen = { locate: () => Promise.resolve(located), hasOwnId: options.id !== undefined }
    return addOne(what, options, terminal, signal, chosen)
  }
  const { findCatalogModel } = await import('../../core/models/model-catalog/model-catalog.ts')
  const model = existsSync(what) ? undefined : findCatalogModel(what)
  if (!model) return addOne(what, options, terminal, signal)
  const { addFromCatalog } = await import('./add-from-catalog.ts')
  await addFromCatalog(model, options, terminal, signal)
}

/** Throws usage when a question is necessary but there is no terminal. */
export function requireInteractive(
  { yes, json, dryRun, withoutQuestion }: AddOptions & { withoutQuestion?: boolean },
  terminal: Terminal,
): void {
  if (!yes && !dryRun && !withoutQuestion && (json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to accept the proposal.')
}

/** Throws Failure `conflict` for a model that does not fit, unless it is added nevertheless. */
export function requireForce(obstacle: string, options: AddOptions): void {
  if (!options.force) throw obstructed(obstacle, '--force', options)
}

/** `option` adds it nevertheless. `--events` is given by the server, whose clients have the field `force`. */
export const obstructed = (obstacle: string, option: string, { events }: AddOptions): Failure =>
  refused('conflict', `${obstacle.replace(/\.?$/, '.')} Add it anyway with ${events ? "'force'" : option}.`)

/** Thrown to end the work before anything is downloaded or written. */
class Ended extends Error {
  /** Prints why. */
  readonly report: () => void

  constructor(report: () => void) {
    super('ended')
    this.report = report
  }
}

/**
 * Adds a model to infer.yaml, and downloads it first if necessary. `withoutQuestion` accepts the proposal without a
 * question unless there is an obstacle, and accepts a model that is offered already.
 */
export async function addOne(
  what: string,
  options: LocalAddOptions,
  terminal: Terminal,
  signal: AbortSignal,
  chosen?: ChosenModel,
): Promise<void> {
  const { yes, json, tokenFile, dataDir, withoutQuestion } = options
  const path = options.config ?? join(dataDir, 'infer.yaml')
  const hub = hubSettings(hostEnvironment(), { tokenFile })
  const { checkLocal, locateModel } = await import('./locate.ts')
  // Everything that can be checked without the file is checked before the download.
  if (!chosen) checkLocal(what, hub)
  requireInteractive(options, terminal)
  const { models, toys } = readConfig(path, options.config !== undefined)
  if (models.some(({ id }) => id === options.id))
    throw refused(
      'conflict',
      `${path} has a model '${options.id}' already. Choose another --id, or remove that model first.`,
    )

  const { propose } = await import('./proposal.ts')
  const { usesLlamaServer } = await import('./proposal.ts')
  const taken = new Set(models.flatMap(namesOf))
  const keepsToys = options.toys === true && models.length === 0
  const editOf = (entry: ModelEntry) => (text: string, name: string) =>
    addModel(keepsToys ? offerToys(text, name) : text, entry, name)
  let agreed = yes
  let shown = false
  const consider = async (located: Located, question: string): Promise<Proposal> => {
    // Only an id that the user chose offers the same files twice.
    const hasOwnId = chosen?.hasOwnId ?? options.id !== undefined
    const same = hasOwnId ? undefined : models.find(({ source }) => source === located.path)
    if (same && withoutQuestion)
      throw new Ended(() =>
        json
          ? terminal.json({ model: { id: same.id }, config: path, offered: true })
          : terminal.print(`The files are here, and '${same.id}' is offered already.`),
      )
    if (same)
      throw refused(
        'conflict',
        `${path} offers this model already, as '${same.id}'. Give another --id to offer it twice.`,
      )
    const proposal = await propose(located, options, { taken, dataDir })
    if (options.dryRun) throw new Ended(() => showDryRun(proposal, path, editOf(proposal.entry), options, terminal))
    if (!shown && !json) showProposal(proposal, terminal)
    if (!shown && proposal.obstacle !== null && (options.force || !proposal.doesNotFit))
      terminal.warn(proposal.obstacle)
    if (!shown && !json) for (const sentence of proposal.advice) terminal.warn(sentence)
    shown = true
    if (proposal.doesNotFit) requireForce(proposal.obstacle!, options)
    if (withoutQuestion && (proposal.obstacle === null || proposal.doesNotFit)) agreed = true
    if (!agreed && (json || !terminal.interactive)) throw obstructed(proposal.obstacle!, '--yes', options)
    agreed ||= await confirm(question, proposal.obstacle === null || proposal.doesNotFit === true, terminal, signal)
    if (!agreed) throw new Ended(() => terminal.remark('Nothing was changed.'))
    return proposal
  }
  const onEvent = openPullDisplay(terminal, options.events === true)
  const preview = async (located: Located, bytes: number) => {
    // Files of a model that is offered already are downloaded again without a question.
    if (withoutQuestion && models.some(({ source }) => source === located.path)) return
    await consider(located, `Download ${sizeText(bytes)} and add it to ${path}?`)
  }
  let proposal: Proposal
  try {
    const tools = { dataDir, hub, signal, onEvent, preview }
    const withProjector = usesLlamaServer(options, dataDir)
    const located = await withDownload(terminal, signal, () =>
      chosen ? chosen.locate(tools) : locateModel(what, { ...tools, withProjector }),
    )
    // Checked again on the downloaded file, because the preview read only its header over the network.
    proposal = await consider(located, `Add it to ${path}?`)
  } catch (thrown) {
    if (thrown instanceof Ended) return thrown.report()
    throw thrown
  }
  const { entry, obstacle } = proposal
  editConfigFile(path, editOf(entry), traitsOf)

  const offered = await isOffered(entry.id, dataDir, signal).catch((thrown: unknown) => {
    signal.throwIfAborted()
    return failureOfThrown(thrown)
  })
  if (json)
    return terminal.json({
      model: entry,
      memory: proposal.memory,
      obstacle,
      advice: proposal.advice,
      ...(chosen?.json ? { catalog: chosen.json } : {}),
      config: path,
      offered: typeof offered === 'boolean' ? offered : null,
    })
  terminal.print(`Added '${entry.id}' to ${path}.`)
  if (!isOurs(dataDir))
    terminal.warn(`The server runs as another user, who must be able to read ${printable(entry.source ?? '')}.`)
  if (models.length === 0 && !toys && !keepsToys)
    terminal.remark('The toy models are no longer offered: infer offers them only while no model is configured.')
  if (options.isStarting) return
  if (!yes && !options.events) await offerMissingEngine(entry, options, signal)
  const next = await tryCommand(entry.id, entry.tasks ?? [])
  if (offered === true) terminal.print(`Ready to use: ${next}`)
  else if (offered instanceof Failure)
    terminal.warn(`Could not check whether the server offers the model: ${offered.message}`)
  else if (offered === undefined) terminal.print(`Start the server with: infer serve. Then: ${next}`)
  else
    terminal.warn(
      'The server does not offer the model yet. It may read another file (see --config), or its log has the reason: infer logs',
    )
}

/** Offers the engine of a model where it is not installed. */
async function offerMissingEngine(
  { engine = 'gguf', tasks = [], command }: ModelEntry,
  { dataDir, offerEngine }: LocalAddOptions,
  signal: AbortSignal,
): Promise<void> {
  const { isInstalled } = await import('./engine-programs.ts')
  if (command !== undefined || isInstalled(engine, { dataDir, path: hostEnvironment().PATH ?? '', tasks })) return
  await offerEngine?.({ engine, tasks, dataDir }, signal)
}

/** Whether the server on this data directory runs as the same user as this process. */
function isOurs(dataDir: string): boolean {
  const owner = statSync(dataDir, { throwIfNoEntry: false })?.uid
  return owner === undefined || owner === process.getuid?.()
}

function readTasks(text: string): Task[] {
  const names = readList(text).map(name => (name.includes('/') ? name : `std/${name}`))
  const unknown = names.find(name => !(modelTasks as readonly string[]).includes(name))
  if (unknown !== undefined)
    throw usageFailure(`There is no task '${unknown}'. The tasks are ${modelTasks.join(', ')}.`)
  return names as Task[]
}

function readSize(text: string): string {
  if (!Bytes.safeParse(text).success) throw usageFailure(sizeAdvice(text))
  return text
}

/** Prints what a dry run would write. */
function showDryRun(
  proposal: Proposal,
  path: string,
  edit: (text: string, name: string) => string,
  { json }: { json?: boolean },
  terminal: Terminal,
): void {
  const { entry, memory, obstacle, doesNotFit, advice } = proposal
  const lines = previewConfigEdit(path, edit, traitsOf)
  if (json) return terminal.json({ model: entry, memory, obstacle, fits: !doesNotFit, advice, config: path, lines })
  showProposal(proposal, terminal)
  for (const sentence of obstacle === null ? advice : [obstacle, ...advice]) terminal.warn(sentence)
  terminal.print(`\nThis would be added to ${path}:\n`)
  for (const line of lines.added) terminal.print(printable(line))
}

/** Prints the proposed settings with their explanations. */
function showProposal({ entry, facts }: Proposal, terminal: Terminal): void {
  const { paint } = terminal
  const width = Math.max(...facts.map(([about]) => about.length))
  terminal.print(paint.name(entry.id))
  for (const [about, text] of facts) terminal.print(`  ${paint.faint(about.padEnd(width))}  ${printable(text)}`)
}

/**
 * Returns the command with which a user tries a model that does these tasks: that of the first task that has one, else
 * `infer model test`.
 */
async function tryCommand(id: string, can: readonly Task[]): Promise<string> {
  // Loaded only here, because it loads the records of all tasks.
  const { taskRecords } = await import('../../core/tasks/registry.ts')
  const record = taskRecords.find(one => one.trial !== undefined && can.includes(one.id))
  return (record?.trial ?? 'infer model test MODEL').replace('MODEL', () => shellWord(id))
}
