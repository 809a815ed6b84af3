import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, root } from './bundle.ts'

/** The files of gpu/worker that `infer engine setup` installs, by their paths. */
export function workerFiles(): Record<string, string> {
  const folder = join(root, 'gpu/worker')
  const paths = filesBelow(folder).filter(path => /^(infer_worker\/[a-z0-9_]+\.py|lock-[a-z]+\.txt)$/.test(path))
  return Object.fromEntries(paths.toSorted().map(path => [path, readFileSync(join(folder, path), 'utf8')]))
}
