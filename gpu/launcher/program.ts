import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'

/** The file that a program name means, or undefined when there is none that may be run. */
export function findProgram(name: string, path: string): string | undefined {
  if (name.includes('/')) return runnable(isAbsolute(name) ? name : resolve(name))
  for (const directory of path.split(':')) {
    const found = directory && runnable(join(directory, name))
    if (found) return found
  }
  return undefined
}

function runnable(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile() ? file : undefined
  } catch {
    return undefined
  }
}
