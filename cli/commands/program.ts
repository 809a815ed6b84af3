import { Command, CommanderError } from 'commander'
import { version } from '../../core/assets.ts'
import type { Failure } from '../../core/failure.ts'
import { addManual, addOwn } from '../help/manual.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface CommandFile {
  define(command: Command, terminal: Terminal): void
}

interface Entry {
  name: string
  group: (typeof groups)[number] | 'hidden'
  summary: string
  load: () => Promise<CommandFile>
}

/** The headings under which `infer --help` lists the commands, in this order. */
const groups = [
  'Daily use:',
  'Server and models:',
  'Organizations and data:',
  'This program:',
  'As in Ollama:',
] as const
const [daily, server, data, program, short] = groups

/** Every command. Only the file of the requested command is loaded. */
export const entries: readonly Entry[] = [
  {
    name: 'run',
    group: daily,
    summary: 'send one prompt to a model: text, an image or a video',
    load: () => import('./run.ts'),
  },
  { name: 'chat', group: daily, summary: 'chat with a model', load: () => import('./chat.ts') },
  { name: 'embed', group: daily, summary: 'turn texts into vectors', load: () => import('./embed.ts') },
  {
    name: 'rerank',
    group: daily,
    summary: 'sort documents by relevance to a query',
    load: () => import('./rerank.ts'),
  },
  {
    name: 'image',
    group: daily,
    summary: 'make, edit and vary images',
    load: () => import('./image.ts'),
  },
  {
    name: 'video',
    group: daily,
    summary: 'make a video, also in several aspect ratios at once',
    load: () => import('./video.ts'),
  },
  {
    name: 'speak',
    group: daily,
    summary: 'synthesize speech from a text',
    load: () => import('./speak.ts'),
  },
  {
    name: 'transcribe',
    group: daily,
    summary: 'turn audio into text or subtitles',
    load: () => import('./transcribe.ts'),
  },
  {
    name: 'job',
    group: daily,
    summary: 'list, follow, cancel and retry jobs',
    load: () => import('./job.ts'),
  },
  {
    name: 'batch',
    group: daily,
    summary: 'run files of requests in the background',
    load: () => import('./batch.ts'),
  },
  {
    name: 'task',
    group: daily,
    summary: 'show the tasks that models can perform',
    load: () => import('./task.ts'),
  },
  {
    name: 'workflow',
    group: daily,
    summary: 'run, validate, draw and store workflows',
    load: () => import('./workflow.ts'),
  },
  {
    name: 'execution',
    group: daily,
    summary: 'list, follow, cancel and retry executions of workflows',
    load: () => import('./execution.ts'),
  },
  {
    name: 'console',
    group: server,
    summary: 'open the web console, signed in',
    load: () => import('./console.ts'),
  },
  { name: 'serve', group: server, summary: 'run the server', load: () => import('./serve.ts') },
  {
    name: 'status',
    group: server,
    summary: 'show the state of the server',
    load: () => import('./status.ts'),
  },
  { name: 'logs', group: server, summary: 'read the logs', load: () => import('./logs.ts') },
  {
    name: 'model',
    group: server,
    summary: 'add, show, test and remove models',
    load: () => import('./model.ts'),
  },
  {
    name: 'config',
    group: server,
    summary: 'check infer.yaml and explain its keys',
    load: () => import('./config.ts'),
  },
  {
    name: 'engine',
    group: server,
    summary: 'install engines; serve one model in its own process',
    load: () => import('./engine.ts'),
  },
  {
    name: 'service',
    group: server,
    summary: 'run the server under systemd',
    load: () => import('./service.ts'),
  },
  {
    name: 'org',
    group: data,
    summary: 'create, limit, suspend and delete organizations',
    load: () => import('./org.ts'),
  },
  {
    name: 'user',
    group: data,
    summary: 'add, list, update and remove users',
    load: () => import('./user.ts'),
  },
  {
    name: 'token',
    group: data,
    summary: 'create, list, revoke, rotate and find tokens',
    load: () => import('./token.ts'),
  },
  {
    name: 'file',
    group: data,
    summary: 'upload, list, download and delete files',
    load: () => import('./file.ts'),
  },
  {
    name: 'webhook',
    group: data,
    summary: 'send events to URLs, and receive them here',
    load: () => import('./webhook.ts'),
  },
  {
    name: 'usage',
    group: data,
    summary: 'show what was used: requests, tokens, GPU time, cost',
    load: () => import('./usage.ts'),
  },
  {
    name: 'audit',
    group: data,
    summary: 'list administrative acts: who changed what',
    load: () => import('./audit.ts'),
  },
  {
    name: 'backup',
    group: data,
    summary: 'copy the database while the server runs',
    load: () => import('./backup.ts'),
  },
  {
    name: 'restore',
    group: data,
    summary: 'replace the database by a backup',
    load: () => import('./restore.ts'),
  },
  {
    name: 'ledger',
    group: data,
    summary: 'check the record of all usage and cost',
    load: () => import('./ledger.ts'),
  },
  { name: 'db', group: data, summary: 'check the database', load: () => import('./db.ts') },
  {
    name: 'doctor',
    group: program,
    summary: 'check this machine and this installation',
    load: () => import('./doctor.ts'),
  },
  {
    name: 'help',
    group: program,
    summary: 'read a guide, or the help of a command',
    load: () => import('./help.ts'),
  },
  {
    name: 'routes',
    group: program,
    summary: 'list every route of the server',
    load: () => import('./routes.ts'),
  },
  {
    name: 'completion',
    group: program,
    summary: 'complete commands with the Tab key',
    load: () => import('./completion.ts'),
  },
  {
    name: 'licenses',
    group: program,
    summary: 'print the licences of included software',
    load: () => import('./licenses.ts'),
  },
  { name: 'ls', group: short, summary: 'list the models (model list)', load: () => import('../models/list.ts') },
  { name: 'ps', group: short, summary: 'list the loaded models', load: () => import('./ps.ts') },
  {
    name: 'pull',
    group: short,
    summary: 'download a model and offer it (model add)',
    load: () => import('./pull.ts'),
  },
  {
    name: 'rm',
    group: short,
    summary: 'stop offering a model (model remove)',
    load: () => import('../models/remove.ts'),
  },
  { name: 'stop', group: short, summary: 'unload a model (model unload)', load: () => import('./stop.ts') },
  {
    name: '__complete',
    group: 'hidden',
    summary: 'print candidates for the last word of a command line',
    load: () => import('./complete.ts'),
  },
]

/**
 * Builds the command line for these arguments (without the program's name). It never ends the process: on wrong usage
 * `parseAsync` throws a CommanderError, which `failureOfUsage` converts to a message.
 */
export async function openProgram(args: readonly string[], terminal: Terminal): Promise<Command> {
  const width = terminal.stdout.columns || 80
  const infer = new Command('infer')
    .description('Turns this machine into an inference platform.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: text => terminal.stdout.write(text),
      writeErr: () => undefined,
      getOutHelpWidth: () => width,
    })
    .addHelpText(
      'after',
      '\nExamples:\n  infer serve         start the server\n  infer run --help    every command has its own help, with examples\n  infer help          list the guides',
    )

  const [requested] = helpLast(args)
  for (const { name, group, summary, load } of entries) {
    const command = infer.command(name, { hidden: group === 'hidden' }).summary(summary)
    command.description(`${sentence(summary)}.`)
    if (group !== 'hidden') command.helpGroup(group)
    if (name !== requested) continue
    ;(await load()).define(command, terminal)
    if (command.commands.length > 0) command.helpCommand('help [command...]', 'print the help of a subcommand')
    if (group !== 'hidden') addManual(command, width)
  }
  addOwn(infer, width)
  return infer
}

/** Converts `help model list` to `model list --help`. A name that is not a command stays, because it may be a guide. */
export const helpLast = (args: readonly string[]): string[] =>
  args[0] === 'help' && entries.some(({ name }) => name === args[1]) ? [...args.slice(1), '--help'] : [...args]

/** Throws usage for help of an unknown subcommand, for which commander would print the help of its parent. */
export function checkHelp(program: Command, args: readonly string[]): void {
  const isHelpCommand = args[0] === 'help'
  if (isHelpCommand && !entries.some(({ name }) => name === args[1])) return
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
function helpOf(program: Command, args: readonly string[]): string {
  const path = ['infer']
  let command: Command | undefined = program
  for (const word of args) {
    command = command.commands.find(one => one.name() === word)
    if (!command) break
    path.push(word)
  }
  return `${path.join(' ')} --help`
}

/** Converts commander's error about wrong usage to a Failure; undefined for any other error. */
export function failureOfUsage(thrown: unknown, args: readonly string[], program: Command): Failure | undefined {
  if (!(thrown instanceof CommanderError)) return undefined
  const help = helpOf(program, args)
  if (thrown.code === 'commander.help') return usageFailure(`The subcommand is missing. See: ${help}`)
  const messageText = thrown.message
    .replace(/^error: /, '')
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument '(.*?)' is invalid\. /s, "'$2' is not a valid value of $1. ")
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument missing$/, '$1 needs a value')
    .replace(/^command-argument value '(.*?)' is invalid for argument '([^']*)'\. /s, "'$1' is not a valid <$2>. ")
    .replace(/Allowed choices are (.*)\.$/s, 'Write one of $1.')
    .replace(/\s*\(Did you mean one of (.+)\?\)$/s, '. Did you mean one of $1?')
    .replace(/\s*\(Did you mean (.+)\?\)$/s, ". Did you mean '$1'?")
  return usageFailure(`${sentence(messageText)}${/[.?!]$/.test(messageText) ? '' : '.'} See: ${help}`)
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
