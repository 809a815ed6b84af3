import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Files that a release writes, also one that was interrupted. */
const released = /^(infer-linux-\w+(\.cdx\.json|\.\d+\.whole)?|infer_.+\.deb|Containerfile|SHA256SUMS)$/

/**
 * Creates the folder of a release, or removes an earlier release from it. Throws for a folder with other files, so that
 * `--output ~` does not delete a home.
 */
export function emptyReleaseFolder(folder: string): void {
  const names = existsSync(folder) ? readdirSync(folder) : []
  const other = names.find(name => !released.test(name))
  if (other !== undefined)
    throw new Error(`${folder} has '${other}', which is not from a release. Name another folder: --output <folder>`)
  for (const name of names) rmSync(join(folder, name))
  mkdirSync(folder, { recursive: true })
}
