import { Command, CommanderError } from 'commander'
import { version } from '../core/assets.ts'
import type { Failure } from '../core/failure.ts'
import { usage } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

interface CommandFile {
  define(command: Command, terminal: Terminal): void
}

interface Entry {
  name: string
  summary: string
  load: () => Promise<CommandFile>
}

/** Every command. Its file is loaded only when it is the one that was asked for. */
const entries: readonly Entry[] = [
  { name: 'serve', summary: 'run the server', load: () => import('./commands/serve.ts') },
  { name: 'chat', summary: 'talk to a model', load: () => import('./commands/chat.ts') },
  { name: 'model', summary: 'see what is offered', load: () => import('./commands/model.ts') },
  { name: 'org', summary: 'create and list organizations', load: () => import('./commands/org.ts') },
  { name: 'token', summary: 'create, list, revoke, rotate and find tokens', load: () => import('./commands/token.ts') },
  { name: 'doctor', summary: 'check this machine and this installation', load: () => import('./commands/doctor.ts') },
  { name: 'backup', summary: 'copy the database while the server runs', load: () => import('./commands/backup.ts') },
  {
    name: 'restore',
    summary: 'put a backup in the place of the database',
    load: () => import('./commands/restore.ts'),
  },
  { name: 'db', summary: 'check the database', load: () => import('./commands/db.ts') },
  { name: 'routes', summary: 'list every path that the server answers', load: () => import('./commands/routes.ts') },
  { name: 'engine', summary: 'run one model as a server of its own', load: () => import('./commands/engine.ts') },
]

/**
 * The command line for these arguments (without the program's own name). Nothing in it ends the process: wrong usage
 * comes out of `parseAsync` as a CommanderError, which `failureOfUsage` turns into a sentence.
 */
export async function openProgram(args: readonly string[], terminal: Terminal): Promise<Command> {
  const program = new Command('infer')
    .description('Turns this machine into an inference platform.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .exitOverride()
    .configureOutput({ writeOut: text => terminal.stdout.write(text), writeErr: () => undefined })
    .addHelpText(
      'after',
      '\nStart with:\n  infer serve\n\nEvery command has its own help, with examples: infer chat --help',
    )

  const asked = args[0] === 'help' ? args[1] : args[0]
  for (const { name, summary, load } of entries) {
    const command = program
      .command(name)
      .summary(summary)
      .description(`${sentence(summary)}.`)
    if (name === asked) (await load()).define(command, terminal)
  }
  return program
}

/** Whether what was thrown only says that help or the version was printed: commander ends them so. */
export const isHelp = (thrown: unknown): boolean => thrown instanceof CommanderError && thrown.exitCode === 0

/** What commander says about wrong usage, as one sentence; undefined for anything else. */
export function failureOfUsage(thrown: unknown, args: readonly string[]): Failure | undefined {
  if (!(thrown instanceof CommanderError)) return undefined
  if (thrown.code === 'commander.help') return usage(`Say what to do: infer ${args[0] ?? ''} --help lists it.`)
  const said = thrown.message
    .replace(/^error: /, '')
    .replace(/\s*\(Did you mean one of (.+)\?\)$/s, '. Did you mean one of $1?')
    .replace(/\s*\(Did you mean (.+)\?\)$/s, ". Did you mean '$1'?")
  const known = entries.some(entry => entry.name === args[0])
  return usage(`${sentence(said)}${/[.?!]$/.test(said) ? '' : '.'} See: infer ${known ? `${args[0]} ` : ''}--help`)
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
