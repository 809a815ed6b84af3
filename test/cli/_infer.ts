import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import { builtProgram } from '../_fixtures.ts'
import { runInProcess } from './_in-process.ts'

/** What users run. */
export { builtProgram as entry }

export interface Ended {
  exitCode: number
  stdout: string
  stderr: string
}

/** An empty folder that is deleted after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'infer-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The environment of a program whose user has set nothing. */
export const plainEnvironment = (): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
})

/** Runs a command line in this process, which takes a third of the time of a process of its own, and waits for its end. */
export async function infer(
  args: readonly string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string | Uint8Array } = {},
): Promise<Ended> {
  const options = { input: Buffer.from(input) }
  const { exitCode, stdout, stderr } = await runInProcess(args, { ...plainEnvironment(), ...env }, options)
  return { exitCode, stdout: stdout.toString('utf8'), stderr }
}

/** Runs the built command line as a child process with its own environment, and waits until it exits. */
export async function inferProcess(
  args: readonly string[],
  { env = {}, input = '' }: { env?: Record<string, string>; input?: string | Uint8Array } = {},
): Promise<Ended> {
  const child = execa(process.execPath, [builtProgram, ...args], {
    env: { ...plainEnvironment(), ...env },
    extendEnv: false,
    input,
    reject: false,
    timeout: 50_000,
    stripFinalNewline: false,
  })
  const { exitCode, stdout, stderr } = await child
  return { exitCode: exitCode ?? -1, stdout, stderr }
}

/** The one JSON document that a command printed. */
export const json = ({ stdout }: Ended): unknown => JSON.parse(stdout)
