import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { vi } from 'vitest'
import { failureOfUsage, openProgram } from '../../cli/commands/program.ts'
import { exitCodeOf, failureOfThrown } from '../../cli/terminal/exit-codes.ts'
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
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const written = Promise.all([buffer(stdout), buffer(stderr)])
  const stdin = Readable.from(input ? [Buffer.from(input)] : [])
  const terminal = openTerminal({
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: Object.assign(stdout, isTerminal ? { isTTY: true, columns: 80 } : {}) as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
    env: display === undefined ? {} : { DISPLAY: display },
  })
  let failure: Failure | undefined
  let program: Awaited<ReturnType<typeof openProgram>> | undefined
  try {
    program = await openProgram(args, terminal)
    await program.parseAsync([...args], { from: 'user' })
  } catch (thrown) {
    failure = (program && failureOfUsage(thrown, args, program)) ?? failureOfThrown(thrown)
    terminal.setExitCode(exitCodeOf(failure))
  } finally {
    vi.unstubAllEnvs()
    stdout.end()
    stderr.end()
  }
  const [out, err] = await written
  return {
    exitCode: terminal.exitCode(),
    stdout: out,
    stderr: err.toString('utf8'),
    ...(failure ? { failure } : {}),
  }
}
