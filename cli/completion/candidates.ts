import type { Argument, CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { generationTasks, tasks } from '../../core/schemas/task.ts'
import { readGuides } from '../../server/docs/guides.ts'
import { commandTasks } from '../client/command-tasks.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  type KnownModel,
  knownDevices,
  knownModels,
  knownPauses,
  knownSlugs,
  knownWorkflows,
  nodesOfExecution,
  recentExecutions,
  recentJobs,
} from './known-names.ts'

export interface CompletionCandidate {
  value: string
  description: string
}
interface Candidates {
  all: CompletionCandidate[]
  /** Paths that the shell adds. */
  paths: 'none' | 'files' | 'directories'
}

/**
 * Returns candidates for the last of these words, which may be empty. The words do not include the program's name.
 * `openProgram` loads the command that the words begin with.
 */
export async function candidatesFor(
  words: readonly string[],
  terminal: Terminal,
  openProgram: (args: readonly string[], terminal: Terminal) => Promise<CommandUnknownOpts>,
): Promise<Candidates> {
  const current = words.at(-1) ?? ''
  const helping = words.length > 1 && words[0] === 'help'
  const before = words.slice(helping ? 1 : 0, -1)
  const program = await openProgram(before, terminal)
  const context = cursorContextOf(program, before, current)
  const { all, paths } = helping ? helpOf(context, words.length === 2) : await valuesAt(context)
  // `--flag=value` is one word, so candidates include the flag.
  const prefix =
    typeof context.expected === 'object' && /^--[^=]+=/.test(current) ? current.slice(0, current.indexOf('=') + 1) : ''
  return {
    all: all.map(one => ({ ...one, value: prefix + one.value })).filter(({ value }) => value.startsWith(current)),
    paths,
  }
}

/** Returns candidates for `infer help`: commands, and guides for the first word. */
function helpOf(context: CursorContext, isFirst: boolean): Candidates {
  if (context.expected !== 'command') return only([])
  const guides = isFirst ? readGuides().map(({ topic, summary }) => ({ value: topic, description: summary })) : []
  return only([...commandsOf(context).all, ...guides])
}

async function valuesAt(context: CursorContext): Promise<Candidates> {
  const { expected, command, given, path } = context
  const dataDir = given.get('--data-dir')
  if (expected === 'command') return commandsOf(context)
  if (expected === 'option') return only(optionsOf(command, given))
  if (expected === 'nothing') return only([])
  const what = 'option' in expected ? expected.option : expected.argument
  const name = nameOf(what)
  if (what.argChoices) return named(what.argChoices)
  if (name === 'data-dir' || name === 'directory' || name === 'folder') return { all: [], paths: 'directories' }
  if (/^(file|path|source|config|image|mask|video|audio|out|params)s?$/.test(name)) return { all: [], paths: 'files' }
  if (path[0] === 'serve' && /^(cert|key)$/.test(name)) return { all: [], paths: 'files' }
  if ((path[0] === 'model' && /^(add|catalog)$/.test(path[1] ?? '')) || (path[0] === 'pull' && name === 'reference'))
    return { all: await catalogNames(), paths: path[1] === 'add' ? 'files' : 'none' }
  if (path[0] === 'job' && /^ids?$/.test(name)) return only(await recentJobs(dataDir, path[1]))
  if (path[0] === 'execution' && name === 'id') return only(await recentExecutions(dataDir, path[1]))
  if (name === 'from' && path[0] === 'execution') return only(await nodesOf(context))
  if (name === 'workflow') {
    const takesFile = path[1] === 'run' || path[1] === 'graph'
    return { all: await knownWorkflows(dataDir), paths: takesFile ? 'files' : 'none' }
  }
  if ((path[0] === 'job' || path[0] === 'task') && name === 'task') return named(tasks)
  if (name === 'task') return named(generationTasks.map(task => task.slice('slug/'.length)))
  if (name === 'key' && path[0] === 'config') {
    const { configKeys } = await import('../../core/models/config-keys.ts')
    return only(configKeys().map(({ key, meaning }) => ({ value: key, description: meaning })))
  }
  if (path[0] === 'gpu' && name === 'device') return only(await knownDevices(dataDir))
  if (path[0] === 'gpu' && name === 'pause') return only(await knownPauses(dataDir))
  if (name === 'priority') return named(['low', 'normal', 'high'])
  if (name === 'model' && (path[0] === 'run' || path[0] === 'video')) return only(await generationModels(context))
  if (/^models?$/.test(name) || (name === 'id' && /^(model|rm|show|stop)$/.test(path[0] ?? '')))
    return only(
      modelsFor(await knownModels(dataDir), (commandTasks as Readonly<Record<string, string>>)[path[0] ?? '']),
    )
  return only([])
}

async function catalogNames(): Promise<CompletionCandidate[]> {
  const { modelCatalog } = await import('../../core/models/model-catalog/model-catalog.ts')
  return modelCatalog().map(model => ({ value: model.name, description: `${model.kind}: ${model.summary}` }))
}

/** Returns the values of `--from`: `failed`, `start`, and the nodes of the execution named before. */
async function nodesOf({ given, positionals }: CursorContext): Promise<CompletionCandidate[]> {
  const [id] = positionals
  const nodes = id === undefined ? [] : await nodesOfExecution(given.get('--data-dir'), id)
  const keywords = [
    { value: 'failed', description: 'all nodes that did not complete' },
    { value: 'start', description: 'all nodes' },
  ]
  return [...keywords, ...nodes]
}

/**
 * Returns the kind of a value: its long flag, or its placeholder if that is more specific: `--config <path>` is a path.
 */
function nameOf(what: Option | Argument): string {
  if (!('long' in what)) return what.name()
  const placeholder = /[<[]([\w-]+)/.exec(what.flags)?.[1] ?? ''
  return /^(path|file)$/.test(placeholder) && what.long !== '--data-dir' ? placeholder : (what.long ?? '').slice(2)
}

const only = (all: CompletionCandidate[]): Candidates => ({ all, paths: 'none' })
const named = (values: readonly string[]): Candidates => only(values.map(value => ({ value, description: '' })))

/** Returns slugs of models for images or videos; for `run`, chat models come first. */
async function generationModels({ path, given }: CursorContext): Promise<CompletionCandidate[]> {
  const dataDir = given.get('--data-dir')
  const [models, slugs] = await Promise.all([path[0] === 'run' ? knownModels(dataDir) : [], knownSlugs(dataDir)])
  const fitting = slugs.filter(({ tasks: [task = ''] }) => path[0] === 'run' || task.includes('video'))
  return [...modelsFor(models, commandTasks.run), ...modelsFor(fitting, undefined)]
}

const commandsOf = ({ command }: CursorContext): Candidates =>
  only(
    command
      .createHelp()
      .visibleCommands(command)
      .map(one => ({ value: one.name(), description: one.summary() || one.description() })),
  )

/** Returns options that were not given yet, and those whose description calls them repeatable. */
function optionsOf(command: CommandUnknownOpts, given: ReadonlyMap<string, string>): CompletionCandidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long, description }) => long !== undefined && (!given.has(long) || /\brepeatable\b/.test(description)))
    .map(({ long, description }) => ({ value: long!, description }))
}

function modelsFor(models: readonly KnownModel[], task: string | undefined): CompletionCandidate[] {
  const fitting = models.filter(({ tasks }) => task === undefined || tasks.length === 0 || tasks.includes(task))
  return fitting.map(({ id, tasks }) => ({ value: id, description: tasks.join(' ') }))
}

/** The position of the cursor in a command line, and what is expected there. */
interface CursorContext {
  /** The names of the command and its parents, without the program's name. */
  path: string[]
  command: CommandUnknownOpts
  /** The expected word: a value of an option, an argument, a command, an option, or nothing known. */
  expected: { option: Option } | { argument: Argument } | 'command' | 'option' | 'nothing'
  /** Values of the options before the cursor, by long flag. */
  given: ReadonlyMap<string, string>
  /** The arguments before the cursor. */
  positionals: readonly string[]
}

/** Finds the context after these words. `program` must contain the commands that the words name. */
function cursorContextOf(program: CommandUnknownOpts, words: readonly string[], current: string): CursorContext {
  let command = program
  const path: string[] = []
  const given = new Map<string, string>()
  let pending: Option | undefined
  let optionsEnded = false
  const positionals: string[] = []

  for (const word of words) {
    if (pending) {
      given.set(pending.long ?? '', word)
      pending = undefined
    } else if (!optionsEnded && word === '--') optionsEnded = true
    else if (!optionsEnded && word.length > 1 && word.startsWith('-')) {
      const [flag = '', ...value] = word.split('=')
      const option = optionNamed(command, flag)
      const takesValue = option !== undefined && (option.required || option.optional)
      if (takesValue && value.length > 0) given.set(option.long ?? '', value.join('='))
      else {
        given.set(option?.long ?? flag, '')
        if (takesValue) pending = option
      }
    } else {
      const subcommand = positionals.length === 0 ? command.commands.find(one => one.name() === word) : undefined
      if (subcommand) {
        command = subcommand
        path.push(word)
      } else positionals.push(word)
    }
  }

  const expected = ((): CursorContext['expected'] => {
    if (pending) return { option: pending }
    if (!optionsEnded && current.startsWith('-')) {
      const option = current.includes('=') ? optionNamed(command, current.split('=')[0] ?? '') : undefined
      return option ? { option } : 'option'
    }
    if (command.commands.length > 0 && positionals.length === 0) return 'command'
    const { registeredArguments: known } = command
    const argument = known[positionals.length] ?? (known.at(-1)?.variadic ? known.at(-1) : undefined)
    return argument ? { argument } : 'nothing'
  })()
  return { path, command, expected, given, positionals }
}

const optionNamed = (command: CommandUnknownOpts, flag: string): Option | undefined =>
  command.options.find(option => option.long === flag || option.short === flag)
