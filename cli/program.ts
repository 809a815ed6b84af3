import { Command, CommanderError } from 'commander'
import { version } from '../core/assets.ts'
import type { Failure } from '../core/failure.ts'
import { usage } from './exit-codes.ts'
import { addManual, addOwn } from './help/manual.ts'
import type { Terminal } from './terminal.ts'

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

/** Every command. Its file is loaded only when it is the one that was asked for. */
export const entries: readonly Entry[] = [
  {
    name: 'run',
    group: daily,
    summary: 'ask a model one question, or for one picture or video',
    load: () => import('./commands/run.ts'),
  },
  { name: 'chat', group: daily, summary: 'talk to a model', load: () => import('./commands/chat.ts') },
  { name: 'embed', group: daily, summary: 'turn texts into vectors', load: () => import('./commands/embed.ts') },
  {
    name: 'rerank',
    group: daily,
    summary: 'sort documents by how well they answer a query',
    load: () => import('./commands/rerank.ts'),
  },
  {
    name: 'video',
    group: daily,
    summary: 'make a video, or the same one in every shape at once',
    load: () => import('./commands/video.ts'),
  },
  {
    name: 'job',
    group: daily,
    summary: 'list, follow, cancel and repeat jobs',
    load: () => import('./commands/job.ts'),
  },
  {
    name: 'task',
    group: daily,
    summary: 'see what models can be asked for',
    load: () => import('./commands/task.ts'),
  },
  {
    name: 'workflow',
    group: daily,
    summary: 'run, check, draw and keep workflows of several tasks',
    load: () => import('./commands/workflow.ts'),
  },
  {
    name: 'execution',
    group: daily,
    summary: 'list, follow, cancel and repeat runs of workflows',
    load: () => import('./commands/execution.ts'),
  },
  { name: 'serve', group: server, summary: 'run the server', load: () => import('./commands/serve.ts') },
  { name: 'status', group: server, summary: 'see what the server does', load: () => import('./commands/status.ts') },
  { name: 'logs', group: server, summary: 'read the logs', load: () => import('./commands/logs.ts') },
  {
    name: 'model',
    group: server,
    summary: 'add, see, test and remove models',
    load: () => import('./commands/model.ts'),
  },
  {
    name: 'config',
    group: server,
    summary: 'check infer.yaml and explain its keys',
    load: () => import('./commands/config.ts'),
  },
  {
    name: 'engine',
    group: server,
    summary: 'run one model as a server of its own',
    load: () => import('./commands/engine.ts'),
  },
  {
    name: 'service',
    group: server,
    summary: 'run the server under systemd',
    load: () => import('./commands/service.ts'),
  },
  { name: 'org', group: data, summary: 'create and list organizations', load: () => import('./commands/org.ts') },
  {
    name: 'token',
    group: data,
    summary: 'create, list, revoke, rotate and find tokens',
    load: () => import('./commands/token.ts'),
  },
  {
    name: 'backup',
    group: data,
    summary: 'copy the database while the server runs',
    load: () => import('./commands/backup.ts'),
  },
  {
    name: 'restore',
    group: data,
    summary: 'put a backup in the place of the database',
    load: () => import('./commands/restore.ts'),
  },
  { name: 'db', group: data, summary: 'check the database', load: () => import('./commands/db.ts') },
  {
    name: 'doctor',
    group: program,
    summary: 'check this machine and this installation',
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'help',
    group: program,
    summary: 'read a guide, or the help of a command',
    load: () => import('./commands/help.ts'),
  },
  {
    name: 'routes',
    group: program,
    summary: 'list every path that the server answers',
    load: () => import('./commands/routes.ts'),
  },
  {
    name: 'completion',
    group: program,
    summary: 'complete commands with the Tab key',
    load: () => import('./commands/completion.ts'),
  },
  {
    name: 'licenses',
    group: program,
    summary: 'print the licences of what is inside',
    load: () => import('./commands/licenses.ts'),
  },
  { name: 'ls', group: short, summary: 'list the models (model list)', load: () => import('./models/list.ts') },
  { name: 'ps', group: short, summary: 'list the loaded models', load: () => import('./commands/ps.ts') },
  {
    name: 'pull',
    group: short,
    summary: 'download a model and offer it (model add)',
    load: () => import('./commands/pull.ts'),
  },
  {
    name: 'rm',
    group: short,
    summary: 'offer a model no longer (model remove)',
    load: () => import('./models/remove.ts'),
  },
  { name: 'stop', group: short, summary: 'unload a model (model unload)', load: () => import('./commands/stop.ts') },
  {
    name: '__complete',
    group: 'hidden',
    summary: 'what may stand at the end of a command line',
    load: () => import('./commands/complete.ts'),
  },
]

/**
 * The command line for these arguments (without the program's own name). Nothing in it ends the process: wrong usage
 * comes out of `parseAsync` as a CommanderError, which `failureOfUsage` turns into a sentence.
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

  const [asked] = helpLast(args)
  for (const { name, group, summary, load } of entries) {
    const command = infer.command(name, { hidden: group === 'hidden' }).summary(summary)
    command.description(`${sentence(summary)}.`)
    if (group !== 'hidden') command.helpGroup(group)
    if (name !== asked) continue
    ;(await load()).define(command, terminal)
    if (command.commands.length > 0) command.helpCommand('help [command...]', 'print the help of one of these')
    if (group !== 'hidden') addManual(command, width)
  }
  addOwn(infer, width)
  return infer
}

/** `help model list` as `model list --help`. What names no command stays as it is: it may be a guide. */
export const helpLast = (args: readonly string[]): string[] =>
  args[0] === 'help' && entries.some(({ name }) => name === args[1]) ? [...args.slice(1), '--help'] : [...args]

/** Throws usage when help is asked for a command that there is not: commander would print that of what stands above it. */
export function checkHelp(program: Command, args: readonly string[]): void {
  const asked = args[0] === 'help'
  if (asked && !entries.some(({ name }) => name === args[1])) return
  const words = asked ? args.slice(1) : args.includes('--help') || args.includes('-h') ? args : []
  let command = program
  const path: string[] = []
  for (const word of words.filter(one => !one.startsWith('-') && one !== 'help')) {
    // What follows the name of a command that has none below it is for that command.
    if (!asked && command.commands.length === 0) return
    const below = command.commands.find(one => one.name() === word)
    path.push(word)
    if (!below)
      throw usage(`There is no command '${path.join(' ')}'. See: ${['infer', ...path.slice(0, -1)].join(' ')} --help`)
    command = below
  }
}

/** Whether what was thrown only says that help or the version was printed: commander ends them so. */
export const isHelp = (thrown: unknown): boolean => thrown instanceof CommanderError && thrown.exitCode === 0

/** The command that arguments name, with those above it, in front of `--help`. */
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

/** What commander says about wrong usage, as one sentence; undefined for anything else. */
export function failureOfUsage(thrown: unknown, args: readonly string[], program: Command): Failure | undefined {
  if (!(thrown instanceof CommanderError)) return undefined
  const help = helpOf(program, args)
  if (thrown.code === 'commander.help') return usage(`Say what to do: ${help} lists it.`)
  const messageText = thrown.message
    .replace(/^error: /, '')
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument '(.*?)' is invalid\. /s, "'$2' is no value of $1. ")
    .replace(/^option '[^']*?(--[\w-]+)[^']*' argument missing$/, '$1 needs a value')
    .replace(/^command-argument value '(.*?)' is invalid for argument '([^']*)'\. /s, "'$1' is no <$2>. ")
    .replace(/Allowed choices are (.*)\.$/s, 'Write one of $1.')
    .replace(/\s*\(Did you mean one of (.+)\?\)$/s, '. Did you mean one of $1?')
    .replace(/\s*\(Did you mean (.+)\?\)$/s, ". Did you mean '$1'?")
  return usage(`${sentence(messageText)}${/[.?!]$/.test(messageText) ? '' : '.'} See: ${help}`)
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
