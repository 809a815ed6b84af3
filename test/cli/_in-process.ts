import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { vi } from 'vitest'
import { runCommand } from '../../cli/commands/run-command.ts'
import { openTerminal } from '../../cli/terminal/terminal.ts'
import type { Failure } from '../../core/failure.ts'

export interface InProcess {
  exitCode: number
  stdout: Buffer
  stderr: string
  failure?: Failure
}

/** Runs a command line in this process, with its own streams. `isTerminal` is about standard output. */
export async function runInProcess(
  args: readonly string[],
  env: Record<string, string>,
  { input, isTerminal = false, display }: { input?: Uint8Array; isTerminal?: boolean; display?: string } = {},
): Promise<InProcess> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const written = Promise.all([buffer(stdout), buffer(stderr)])
  const stdin = Readable.from(input ? [Buffer.from(input)] : [])
  const terminal = openTerminal({
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: Object.assign(stdout, isTerminal ? { isTTY: true, columns: 80 } : {}) as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
    env: { ...env, ...(display === undefined ? {} : { DISPLAY: display }) },
  })
  const failure = await withEnvironment(env, () => runCommand(args, terminal))
  stdout.end()
  stderr.end()
  const [out, err] = await written
  return {
    exitCode: terminal.exitCode(),
    stdout: out,
    stderr: err.toString('utf8'),
    ...(failure ? { failure } : {}),
  }
}

/** Variables that change what a command does, of which it gets only those that a test sets. */
const ofTheUser = /^(INFER_|XDG_|CI$|GITHUB_|NO_COLOR$|FORCE_COLOR$)/
let running = 0

/** Commands that run at the same time share what they set in the environment of this process. */
async function withEnvironment<T>(env: Record<string, string>, run: () => Promise<T>): Promise<T> {
  for (const name of Object.keys(process.env)) if (ofTheUser.test(name)) vi.stubEnv(name, undefined)
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  running++
  try {
    return await run()
  } finally {
    if (--running === 0) vi.unstubAllEnvs()
  }
}
