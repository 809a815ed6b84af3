import { Command, CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { version } from '../../core/assets.ts'
import type { Failure } from '../../core/failure.ts'
import { addManual, addOwn } from '../help/manual.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { commandName } from '../terminal/options.ts'
import { printPaged } from '../terminal/pager.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface CommandFile {
  define(command: Command, terminal: Terminal): void
}

interface Entry {
  name: string
  group: string
  summary: string
  load: () => Promise<CommandFile>
}

/** The heading of commands that `infer --help` leaves out. */
const hidden = 'hidden'

type Row = readonly [name: string, summary: string, load: Entry['load']]
const under = (group: string, ...rows: readonly Row[]): Entry[] =>
  rows.map(([name, summary, load]) => ({ name, group, summary, load }))

/** Every command, below the heading under which `infer --help` lists it. Only the file of the requested one is loaded. */
export const entries: readonly Entry[] = [
  ...under(
    'Daily use:',
    ['run', 'send one prompt to a model: text, an image or a video', () => import('./run.ts')],
    ['chat', 'chat with a model', () => import('./chat.ts')],
    ['embed', 'turn texts into vectors', () => import('./embed.ts')],
    ['rerank', 'sort documents by relevance to a query', () => import('./rerank.ts')],
    ['image', 'make, edit and vary images', () => import('./image.ts')],
    ['video', 'make a video, also in several aspect ratios at once', () => import('./video.ts')],
    ['speak', 'synthesize speech from a text', () => import('./speak.ts')],
    ['transcribe', 'turn audio into text or subtitles', () => import('./transcribe.ts')],
    ['job', 'list, follow, cancel and retry jobs', () => import('./job.ts')],
    ['batch', 'run files of requests in the background', () => import('./batch.ts')],
    ['task', 'show the tasks that models can perform', () => import('./task.ts')],
    ['workflow', 'run, validate, draw and store workflows', () => import('./workflow.ts')],
    ['execution', 'list, follow, cancel and retry executions of workflows', () => import('./execution.ts')],
    ['approval', 'answer what workflows ask people', () => import('./approval.ts')],
  ),
  ...under(
    'Server and models:',
    ['console', 'open the web console, signed in', () => import('./console.ts')],
    ['serve', 'run the server', () => import('./serve.ts')],
    ['status', 'show the state of the server', () => import('./status.ts')],
    ['logs', 'read the logs', () => import('./logs.ts')],
    ['model', 'add, show, test and remove models', () => import('./model.ts')],
    ['gpu', 'list GPUs, and give them to other programs for a while', () => import('./gpu.ts')],
    ['pool', 'add and list other machines on which engines run', () => import('./pool.ts')],
    ['kubernetes', 'print what a cluster needs for engines, or for the server', () => import('./kubernetes.ts')],
    ['config', 'check infer.yaml and explain its keys', () => import('./config.ts')],
    ['engine', 'install engines; serve one model in its own process', () => import('./engine.ts')],
    ['service', 'run the server under systemd', () => import('./service.ts')],
  ),
  ...under(
    'Organizations and data:',
    ['org', 'create, limit, suspend and delete organizations', () => import('./org.ts')],
    ['user', 'add, list, update and remove users', () => import('./user.ts')],
    ['token', 'create, list, revoke, rotate and find tokens', () => import('./token.ts')],
    ['file', 'upload, list, download and delete files', () => import('./file.ts')],
    ['webhook', 'send events to URLs, and receive them here', () => import('./webhook.ts')],
    ['usage', 'show what was used: requests, tokens, GPU time, cost', () => import('./usage.ts')],
    ['audit', 'list administrative acts: who changed what', () => import('./audit.ts')],
    ['backup', 'copy the database while the server runs', () => import('./backup.ts')],
    ['restore', 'replace the database by a backup', () => import('./restore.ts')],
    ['ledger', 'check the record of all usage and cost', () => import('./ledger.ts')],
    ['db', 'check the database', () => import('./db.ts')],
  ),
  ...under(
    'This program:',
    ['doctor', 'check this machine and this installation', () => import('./doctor.ts')],
    ['help', 'read a guide, or the help of a command', () => import('./help.ts')],
    ['routes', 'list every route of the server', () => import('./routes.ts')],
    ['completion', 'complete commands with the Tab key', () => import('./completion.ts')],
    ['licenses', 'print the licences of included software', () => import('./licenses.ts')],
  ),
  ...under(
    'As in Ollama:',
    ['ls', 'list the models (model list)', () => import('../models/list.ts')],
    ['list', 'list the models (model list)', () => import('../models/list.ts')],
    ['show', 'show the settings and engines of a model (model show)', () => import('../models/show.ts')],
    ['ps', 'list the loaded models', () => import('./ps.ts')],
    ['pull', 'download a model and offer it (model add)', () => import('./pull.ts')],
    ['rm', 'stop offering a model (model remove)', () => import('../models/remove.ts')],
    ['stop', 'unload a model (model unload)', () => import('./stop.ts')],
  ),
  ...under(
    hidden,
    ['__complete', 'print candidates for the last word of a command line', () => import('./complete.ts')],
    ['__front', 'run a gateway process of the server', () => import('./front.ts')],
  ),
]

/**
 * Builds the command line for these arguments (without the program's name). It never ends the process: on wrong usage
 * `parseAsync` throws a CommanderError, which `failureOfUsage` converts to a message.
 */
export async function openProgram(args: readonly string[], terminal: Terminal): Promise<CommandUnknownOpts> {
  const width = terminal.stdout.columns || 80
  const isPaged = args[0] === 'help' && !args.includes(noPager)
  const help: string[] = []
  const infer = new Command('infer')
    .description('Turns this machine into an inference platform.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    // The last event of a help, which commander writes in parts.
    .on('afterAllHelp', () => isPaged && printPaged(help.join('').trimEnd(), terminal))
    .exitOverride()
    .configureOutput({
      writeOut: text => (isPaged ? void help.push(text) : void terminal.stdout.write(text)),
      writeErr: () => undefined,
      getOutHelpWidth: () => width,
    })
    .addHelpText(
      'after',
      '\nExamples:\n  infer serve         start the server\n  infer run --help    every command has its own help, with examples\n  infer help          list the guides',
    )

  const [requested] = helpLast(args)
  for (const { name, group, summary, load } of entries) {
    const command = infer.command(name, { hidden: group === hidden }).summary(summary)
    command.description(`${sentence(summary)}.`)
    if (group !== hidden) command.helpGroup(group)
    if (name !== requested) continue
    ;(await load()).define(command, terminal)
    if (command.commands.length > 0) command.helpCommand('help [command...]', 'print the help of a subcommand')
    if (group !== hidden) addManual(command, width)
  }
  addOwn(infer, width)
  // An empty id, of a variable that is not set, would name the list of all.
  infer.hook('preAction', (_program, command) => {
    const empty = command.registeredArguments.findIndex(({ variadic }, at) => !variadic && command.args[at] === '')
    const name = command.registeredArguments[empty]?.name()
    if (name !== undefined && !/text|prompt|message/.test(name))
      throw usageFailure(`The argument <${name}> is empty. See: ${commandName(command)} --help`)
  })
  return infer
}

const noPager = '--no-pager'

/** Converts `help model list` to `model list --help`. A name that is not a command stays, because it may be a guide. */
export function helpLast(args: readonly string[]): string[] {
  const words = args.filter(word => word !== noPager)
  const isOfCommand = words[0] === 'help' && entries.some(({ name }) => name === words[1])
  return isOfCommand ? [...words.slice(1), '--help'] : [...args]
}

/** Throws usage for help of an unknown subcommand, for which commander would print the help of its parent. */
export function checkHelp(program: CommandUnknownOpts, args: readonly string[]): void {
  const isHelpCommand = args[0] === 'help'
  if (isHelpCommand && helpLast(args)[0] === 'help') return
  const words = isHelpCommand ? args.slice(1) : args.includes('--help') || args.includes('-h') ? args : []
  let command = program
  const path: string[] = []
  for (const word of words.filter(one => !one.startsWith('-') && one !== 'help')) {
    // Words after a command without subcommands are its arguments.
    if (!isHelpCommand && command.commands.length === 0) return
    const below = command.commands.find(one => one.name() === word)
    path.push(word)
    if (!below)
      throw usageFailure(
        `There is no command '${path.join(' ')}'. See: ${['infer', ...path.slice(0, -1)].join(' ')} --help`,
      )
    command = below
  }
}

/** Whether the error only reports that help or the version was printed. */
export const isHelp = (thrown: unknown): boolean => thrown instanceof CommanderError && thrown.exitCode === 0

/** Returns the command line that prints the help of the command that the arguments name. */
function helpOf(program: CommandUnknownOpts, args: readonly string[]): string {
  const path = ['infer']
  let command: CommandUnknownOpts | undefined = program
  for (const word of args) {
    command = command.commands.find(one => one.name() === word)
    if (!command) break
    path.push(word)
  }
  return `${path.join(' ')} --help`
}

/** Converts commander's error about wrong usage to a Failure; undefined for any other error. */
export function failureOfUsage(
  thrown: unknown,
  args: readonly string[],
  program: CommandUnknownOpts,
): Failure | undefined {
  if (!(thrown instanceof CommanderError)) return undefined
  const help = helpOf(program, args)
  if (thrown.code === 'commander.help') return usageFailure(`The subcommand is missing. See: ${help}`)
  const messageText = thrown.message
    .replace(/^error: /, '')
    .replace(/^unknown option '--(?:port|host|bind|address)'.*/s, all =>
      args[0] === 'serve' ? `${/^[^(]*/.exec(all)![0].trimEnd()}. Write --listen host:port` : all,
    )
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument '(.*?)' is invalid\. /s, "'$2' is not a valid value of $1. ")
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument missing$/, '$1 needs a value')
    .replace(/^command-argument value '(.*?)' is invalid for argument '([^']*)'\. /s, "'$1' is not a valid <$2>. ")
    .replace(/Allowed choices are (.*)\.$/s, 'Write one of $1.')
    .replace(/\s*\(Did you mean one of (.+)\?\)$/s, '. Did you mean one of $1?')
    .replace(/\s*\(Did you mean (.+)\?\)$/s, ". Did you mean '$1'?")
  return usageFailure(`${sentence(messageText)}${/[.?!]$/.test(messageText) ? '' : '.'} See: ${help}`)
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
