import { readdirSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'

/** The folder of the environments that `infer engine setup` makes, one folder each. */
export const environmentsFolder = (dataDir: string): string => join(dataDir, 'engines')

/**
 * Returns the PATH with which an engine and its programs are found: the environments named first, then `path`, then every
 * other environment below `engines` of the data directory. `preferred` has names of such environments or absolute paths.
 */
export function enginePath(dataDir: string, path: string, preferred: readonly string[] = []): string {
  const folder = environmentsFolder(dataDir)
  const first = preferred.map(name => join(isAbsolute(name) ? name : join(folder, name), 'bin'))
  const others = namesIn(folder)
    .map(name => join(folder, name, 'bin'))
    .filter(one => !first.includes(one))
  return [...first, path, ...others].filter(one => one !== '').join(':')
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
      .toSorted()
  } catch {
    return []
  }
}
