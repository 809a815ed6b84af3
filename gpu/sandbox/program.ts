import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import { execa } from 'execa'

/** Resolves a program name or path to an executable file; undefined if there is none. */
export function findProgram(name: string, path: string): string | undefined {
  if (name.includes('/')) return executableAt(isAbsolute(name) ? name : resolve(name))
  for (const directory of path.split(':')) {
    const found = directory && executableAt(join(directory, name))
    if (found) return found
  }
  return undefined
}

/** Returns the files of these programs by name, or a sentence about the first that is missing. */
export function findPrograms(names: readonly string[], path: string): Map<string, string> | string {
  const found = new Map<string, string>()
  for (const name of names) {
    const file = findProgram(name, path)
    if (file === undefined) return `${name} is not installed`
    found.set(name, file)
  }
  return found
}

function executableAt(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile() ? file : undefined
  } catch {
    return undefined
  }
}

export interface ProgramRun {
  exitCode: number | undefined
  /** For example `ENOENT` or `EACCES`, when it did not start. */
  errorCode?: string
  /** The signal that ended it. */
  signal?: string
  timedOut: boolean
  stdout: string
  stderr: string
}

/** Runs a program with nothing but this environment, and kills it after `timeoutMs`. Never throws. */
export async function runProgram(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
  timeoutMs: number,
): Promise<ProgramRun> {
  try {
    const { exitCode, code, signal, timedOut, stdout, stderr } = await execa(file, args, {
      env,
      extendEnv: false,
      stdin: 'ignore',
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      maxBuffer: 4 << 20,
      reject: false,
    })
    const errorCode = exitCode === undefined && !timedOut ? code : undefined
    return { exitCode, errorCode, signal, timedOut, stdout, stderr }
  } catch (cause) {
    return { exitCode: undefined, errorCode: String(cause), timedOut: false, stdout: '', stderr: '' }
  }
}
