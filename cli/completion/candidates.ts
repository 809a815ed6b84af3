import type { Argument, Command, Option } from 'commander'
import { generationTasks, tasks } from '../../core/schemas/task.ts'
import { readGuides } from '../../server/docs/guides.ts'
import { commandTasks } from '../command-tasks.ts'
import { openProgram } from '../program.ts'
import type { Terminal } from '../terminal.ts'
import { type CursorContext, cursorContextOf } from './cursor-context.ts'
import { recentJobs } from './job-ids.ts'
import { type KnownModel, knownModels, knownSlugs } from './model-ids.ts'
import { knownWorkflows, nodesOfExecution, recentExecutions } from './workflow-ids.ts'

export interface Candidate {
  value: string
  description: string
}
export interface Candidates {
  all: Candidate[]
  /** What the shell adds by itself. */
  paths: 'none' | 'files' | 'directories'
}

const nothing: Candidates = { all: [], paths: 'none' }

/** What may stand in the place of the last of these words, which may be empty. The program's own name is not among them. */
export async function candidatesFor(words: readonly string[], terminal: Terminal): Promise<Candidates> {
  const current = words.at(-1) ?? ''
  const helping = words.length > 1 && words[0] === 'help'
  const before = words.slice(helping ? 1 : 0, -1)
  const program = await openProgram(before, terminal)
  const place = cursorContextOf(program, before, current)
  const { all, paths } = helping ? helpOf(place, words.length === 2) : await valuesAt(place)
  // `--flag=value` is one word: the whole of it is offered.
  const prefix =
    typeof place.wanted === 'object' && /^--[^=]+=/.test(current) ? current.slice(0, current.indexOf('=') + 1) : ''
  return {
    all: all.map(one => ({ ...one, value: prefix + one.value })).filter(({ value }) => value.startsWith(current)),
    paths,
  }
}

/** What `infer help` explains: commands, and as the first word guides too. */
function helpOf(place: CursorContext, isFirst: boolean): Candidates {
  if (place.wanted !== 'command') return nothing
  const guides = isFirst ? readGuides().map(({ topic, summary }) => ({ value: topic, description: summary })) : []
  return { all: [...commandsOf(place).all, ...guides], paths: 'none' }
}

async function valuesAt(place: CursorContext): Promise<Candidates> {
  const { wanted, command, given, path } = place
  if (wanted === 'command') return commandsOf(place)
  if (wanted === 'option') return { all: optionsOf(command, given), paths: 'none' }
  if (wanted === 'nothing') return nothing
  const what = 'option' in wanted ? wanted.option : wanted.argument
  const name = nameOf(what)
  if (what.argChoices) return { all: what.argChoices.map(value => ({ value, description: '' })), paths: 'none' }
  if (name === 'data-dir' || name === 'directory' || name === 'folder') return { all: [], paths: 'directories' }
  if (/^(file|path|source|config|image|mask|video|audio|out|params)s?$/.test(name)) return { all: [], paths: 'files' }
  if (path[0] === 'serve' && /^(cert|key)$/.test(name)) return { all: [], paths: 'files' }
  if ((path[0] === 'model' && /^(add|catalog)$/.test(path[1] ?? '')) || (path[0] === 'pull' && name === 'reference'))
    return { all: await catalogNames(), paths: path[1] === 'add' ? 'files' : 'none' }
  if (path[0] === 'job' && /^ids?$/.test(name))
    return { all: await recentJobs(given.get('--data-dir'), path[1]), paths: 'none' }
  if (path[0] === 'execution' && name === 'id')
    return { all: await recentExecutions(given.get('--data-dir'), path[1]), paths: 'none' }
  if (name === 'from' && path[0] === 'execution') return { all: await nodesOf(place), paths: 'none' }
  if (name === 'workflow') {
    const takesFile = path[1] === 'run' || path[1] === 'graph'
    return { all: await knownWorkflows(given.get('--data-dir')), paths: takesFile ? 'files' : 'none' }
  }
  if ((path[0] === 'job' || path[0] === 'task') && name === 'task') return named(tasks)
  if (name === 'task') return named(generationTasks.map(task => task.slice('slug/'.length)))
  if (name === 'key' && path[0] === 'config') {
    const { configKeys } = await import('../../core/models/config-keys.ts')
    return { all: configKeys().map(({ key, meaning }) => ({ value: key, description: meaning })), paths: 'none' }
  }
  if (name === 'priority') return named(['low', 'normal', 'high'])
  if (name === 'model' && (path[0] === 'run' || path[0] === 'video')) return { all: await makers(place), paths: 'none' }
  if (/^models?$/.test(name) || (name === 'id' && /^(model|rm|stop)$/.test(path[0] ?? '')))
    return {
      all: modelsFor(
        await knownModels(given.get('--data-dir')),
        (commandTasks as Readonly<Record<string, string>>)[path[0] ?? ''],
      ),
      paths: 'none',
    }
  return nothing
}

async function catalogNames(): Promise<Candidate[]> {
  const { modelCatalog } = await import('../../core/models/model-catalog/model-catalog.ts')
  return modelCatalog().map(model => ({ value: model.name, description: `${model.kind}: ${model.summary}` }))
}

/** Where an execution can be begun again: at a node of the one that stands before, or at these two. */
async function nodesOf({ given, positionals }: CursorContext): Promise<Candidate[]> {
  const [id] = positionals
  const nodes = id === undefined ? [] : await nodesOfExecution(given.get('--data-dir'), id)
  const usual = [
    { value: 'failed', description: 'what has not been done' },
    { value: 'start', description: 'everything' },
  ]
  return [...usual, ...nodes]
}

/** What a value is, from the long flag or, where that says less, from its placeholder: `--config <path>` is a path. */
function nameOf(what: Option | Argument): string {
  if (!('long' in what)) return what.name()
  const placeholder = /[<[]([\w-]+)/.exec(what.flags)?.[1] ?? ''
  return /^(path|file)$/.test(placeholder) && what.long !== '--data-dir' ? placeholder : (what.long ?? '').slice(2)
}

const named = (values: readonly string[]): Candidates => ({
  all: values.map(value => ({ value, description: '' })),
  paths: 'none',
})

/** Slugs of what makes pictures or videos, and for `run` the chat models before them. */
async function makers({ path, given }: CursorContext): Promise<Candidate[]> {
  const dataDir = given.get('--data-dir')
  const [models, slugs] = await Promise.all([path[0] === 'run' ? knownModels(dataDir) : [], knownSlugs(dataDir)])
  const fitting = slugs.filter(({ tasks: [task = ''] }) => path[0] === 'run' || task.includes('video'))
  return [...modelsFor(models, commandTasks.run), ...modelsFor(fitting, undefined)]
}

const commandsOf = ({ command }: CursorContext): Candidates => ({
  all: command
    .createHelp()
    .visibleCommands(command)
    .map(one => ({ value: one.name(), description: one.summary() || one.description() })),
  paths: 'none',
})

/** Options that were not given yet; those whose description calls them repeatable always. */
function optionsOf(command: Command, given: ReadonlyMap<string, string>): Candidate[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long, description }) => long !== undefined && (!given.has(long) || /\brepeatable\b/.test(description)))
    .map(({ long, description }) => ({ value: long!, description }))
}

function modelsFor(models: readonly KnownModel[], task: string | undefined): Candidate[] {
  const fitting = models.filter(({ tasks }) => task === undefined || tasks.length === 0 || tasks.includes(task))
  return fitting.map(({ id, tasks }) => ({ value: id, description: tasks.join(' ') }))
}
