import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '../failure.ts'
import { configSchema, parseConfig } from './config.ts'
import { schemaFile } from './edit.ts'
import type { Model } from './model.ts'

/** How often an edit begins anew because somebody else has changed the file meanwhile. */
const maxAttempts = 5

/**
 * Changes infer.yaml with one of the functions of edit.ts and puts the new file in its place by renaming, so that
 * nobody reads half of it and a crash leaves the old or the new one. A file that is not there counts as empty. A link
 * stays a link; mode and owner stay. `check` is the one of `parseConfig`. Throws what the edit and the check throw, and
 * then nothing has been written.
 */
export function editConfigFile(
  path: string,
  edit: (text: string, path: string) => string,
  check?: (model: Model) => unknown,
): void {
  const real = existsSync(path) ? realpathSync(path) : path
  for (let attempt = 1; ; attempt++) {
    const before = textOf(real)
    const after = edit(before ?? '', path)
    if (after === before) return
    if (check) parseConfig(after, path, check)
    const made = prepare(real, after)
    try {
      if (textOf(real) === before) {
        renameSync(made, real)
        return writeSchema(real, after)
      }
    } finally {
      rmSync(made, { force: true })
    }
    if (attempt === maxAttempts)
      throw new Failure('conflict', `${path} is being changed by somebody else at the same time. Try again.`)
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw cause
  }
}

/** The new file beside the old one, on disk and with its rights. */
function prepare(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const made = `${path}.${process.pid}.new`
  const old = statSync(path, { throwIfNoEntry: false })
  const file = openSync(made, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  if (old) {
    chmodSync(made, old.mode & 0o777)
    // Root may edit the file of the server's user, who must be able to read it afterwards.
    if (process.getuid?.() === 0) chownSync(made, old.uid, old.gid)
  }
  return made
}

/** A file that names the schema gets it, in the version of this program. The edit does not depend on it. */
function writeSchema(path: string, text: string): void {
  if (!text.includes(`$schema=./${schemaFile}`)) return
  const place = join(dirname(path), schemaFile)
  const schema = `${JSON.stringify(configSchema(), null, 2)}\n`
  try {
    // Nothing in it is secret, and an editor may run as somebody else than who writes it.
    if (textOf(place) !== schema) {
      writeFileSync(place, schema)
      chmodSync(place, 0o644)
    }
  } catch {
    // It belongs to somebody else; `infer config schema` prints it.
  }
}
