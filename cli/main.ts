#!/usr/bin/env node
import { forkedScript, runForked } from '../core/assets.ts'
import { runCommand } from './commands/run-command.ts'
import { exitCodeOf, exitCodes, failureOfThrown } from './terminal/exit-codes.ts'
import { openTerminal } from './terminal/terminal.ts'

// Node would open its inspector, through which every program of this machine could run code with the keys of the server.
process.on('SIGUSR1', () => {})

// No top-level await: the bundle is CommonJS.
const forked = forkedScript()
void (forked === undefined ? run(process.argv.slice(2)) : runForked(forked))

async function run(args: string[]): Promise<never> {
  // Files are readable by their owner only, and `__proto__` in JSON cannot change a prototype.
  process.umask(0o077)
  Reflect.deleteProperty(Object.prototype, '__proto__')

  const terminal = openTerminal(process)
  // `infer model list | head -1` ends without a message; a server must outlive the reader of its output.
  const outlivesReaders = ['serve', 'engine', '__front'].includes(args[0] ?? '')
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', () => {
      if (!outlivesReaders) process.exit(exitCodes.fine)
    })
  // A server logs its own fatal errors.
  if (args[0] !== 'serve')
    process.on('uncaughtException', thrown => {
      const failure = failureOfThrown(thrown)
      terminal.failed(failure, args.includes('--json'))
      process.exit(exitCodeOf(failure))
    })
  await runCommand(args, terminal)
  // A pipe holds 64 kB. More output is written as the reader reads it, and would be lost if the process ended earlier.
  if (!outlivesReaders) await Promise.all([process.stdout, process.stderr].map(flushed))
  process.exit(terminal.exitCode())
}

/** Resolves when the stream has flushed all output. */
const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise(resolve => {
    stream.write('', () => resolve())
  })
