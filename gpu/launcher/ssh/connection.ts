import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type ProgramRun, runProgram } from '../../sandbox/program.ts'
import {
  commandArguments,
  connectArguments,
  forwardArguments,
  quoted,
  type SshAddress,
  shellCommand,
} from './ssh-command.ts'
import { sshFault } from './ssh-fault.ts'

/** Milliseconds until the machine has answered, and for each small command on the connection. */
const limitMs = { connect: 20_000, command: 10_000 }
/** Bytes of the error output of ssh that are kept. */
const keptErrors = 4_096

/** What the machine says of itself when it is connected. */
export interface Box {
  /** `Linux x86_64`. */
  system: string
  /** Where programs keep what they can make again: an absolute path. */
  cache: string
}

const mark = 'infer-box'
/** It stays until its input ends, as the connection does then. */
const greeting = `umask 077; case $XDG_CACHE_HOME in /*) c=$XDG_CACHE_HOME;; *) c=$HOME/.cache;; esac; printf '\\n${mark}\\t%s\\t%s\\n' "$(uname -sm)" "$c"; exec cat`

/** The program ssh with arguments that come before all others, and its environment. */
export interface SshProgram {
  command: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
}

/**
 * Opens one connection of the system's ssh, with the keys and the configuration of its user. Everything else is done over it:
 * commands, and sockets of this machine that lead to the other. Rejects with a sentence. `signal`: ends the attempt.
 */
export async function openConnection(
  address: SshAddress,
  control: string,
  { command: [file, ...first], env: given }: SshProgram,
  signal?: AbortSignal,
) {
  const env = Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  ) as Record<string, string>
  // A process group of its own: Ctrl-C in the terminal of the server ends no connection.
  const start = (args: readonly string[], input: number | 'pipe' = 'pipe'): ChildProcess =>
    spawn(file, [...first, ...args], { env, stdio: [input, 'pipe', 'pipe'], detached: true })
  const run = (args: readonly string[], timeoutMs: number): Promise<ProgramRun> =>
    runProgram(file, [...first, ...args], env, timeoutMs)

  const main = start(connectArguments(address, control, shellCommand(greeting)))
  let errors = ''
  main.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-keptErrors)
  })
  main.stdin!.on('error', () => {})
  let missing: string | undefined
  main.once('error', cause => {
    missing = `The program ssh could not be started: ${cause.message}. Install openssh-client.`
  })
  /** Resolves with the reason when the connection has ended. */
  const ended = once(main, 'close')
    .catch(() => {})
    .then(() => missing ?? sshFault(address, errors))
  const end = () => void (main.pid !== undefined && main.kill('SIGKILL'))
  const timer = setTimeout(end, limitMs.connect)
  signal?.addEventListener('abort', end)
  const greeted = new Promise<Box>(resolve => {
    let text = ''
    main.stdout!.setEncoding('utf8').on('data', (piece: string) => {
      // A login shell may print anything before.
      text = (text + piece).slice(-keptErrors)
      const [, system, cache] = new RegExp(`\n${mark}\t([^\t\n]*)\t([^\n]*)\n`).exec(text) ?? []
      if (system !== undefined && cache !== undefined) resolve({ system, cache })
    })
  })
  const box = await Promise.race([greeted, ended])
  clearTimeout(timer)
  signal?.removeEventListener('abort', end)
  if (typeof box === 'string') throw new Error(box)

  return {
    box,
    ended,
    /** Starts a script of a POSIX shell there. Its input is a pipe, an open file, or what a command of this machine prints. */
    start(script: string, input: number | { command: readonly string[] } | 'pipe' = 'pipe'): ChildProcess {
      const args = commandArguments(address, control, shellCommand(script))
      if (typeof input !== 'object') return start(args, input)
      const words = [...input.command, '|', file, ...first, ...args].map(word => (word === '|' ? word : quoted(word)))
      return spawn('/bin/sh', ['-c', words.join(' ')], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    },
    /** Runs a short command there to its end. */
    run: (script: string): Promise<ProgramRun> =>
      run(commandArguments(address, control, shellCommand(script)), limitMs.command),
    /** Lets a socket of this machine lead to a socket path or `address:port` there. Rejects with a sentence. */
    async forward(from: string, to: string): Promise<void> {
      rmSync(from, { force: true })
      const { exitCode, stderr } = await run(forwardArguments(address, control, 'forward', from, to), limitMs.command)
      if (exitCode !== 0) throw new Error(sshFault(address, stderr))
    },
    /** Ends that. */
    async cancel(from: string, to: string): Promise<void> {
      await run(forwardArguments(address, control, 'cancel', from, to), limitMs.command)
      rmSync(from, { force: true })
    },
    /** What ssh has complained about last. */
    errors: (): string => errors,
    /** Ends the connection, and with it every command on it. */
    async close(): Promise<void> {
      end()
      await ended
      rmSync(control, { force: true })
    },
  }
}

export type Connection = Awaited<ReturnType<typeof openConnection>>
