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
import type { ModelCheck } from './engine-traits.ts'
import type { ConfigLines } from './model-administration.ts'

/** How often an edit is repeated because another process has changed the file meanwhile. */
const maxAttempts = 5

/**
 * Changes infer.yaml with one of the functions of edit.ts. The new file replaces the old one by renaming, so that readers
 * never see half of it and a crash leaves the old or the new file. A missing file counts as empty. A link stays a link;
 * mode and owner stay. `check` is as in `parseConfig`. Throws what the edit and the check throw; then nothing is written.
 */
export function editConfigFile(path: string, edit: (text: string, path: string) => string, check?: ModelCheck): void {
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
    if (attempt === maxAttempts) throw new Failure('conflict', `Another process keeps changing ${path}. Try again.`)
  }
}

/**
 * Returns the lines of infer.yaml that an edit would add and remove. Throws what the edit and the check throw; writes
 * nothing.
 */
export function previewConfigEdit(
  path: string,
  edit: (text: string, path: string) => string,
  check?: ModelCheck,
): ConfigLines {
  const before = textOf(path) ?? ''
  const after = edit(before, path)
  if (check) parseConfig(after, path, check)
  return configLines(before, after)
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw cause
  }
}

/** Writes the new file beside the old one, fsynced and with the same mode and owner. */
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

/** Writes the schema of this version beside a file that refers to it. Errors are ignored. */
function writeSchema(path: string, text: string): void {
  if (!text.includes(`$schema=./${schemaFile}`)) return
  const target = join(dirname(path), schemaFile)
  const schema = `${JSON.stringify(configSchema(), null, 2)}\n`
  try {
    // Readable for all: it has no secrets, and the editor may run as another user.
    if (textOf(target) !== schema) {
      writeFileSync(target, schema)
      chmodSync(target, 0o644)
    }
  } catch {
    // The file may belong to another user; `infer config schema` prints the schema.
  }
}

/** Returns the lines that differ between two versions of a text, without those that both begin and end with. */
export function configLines(before: string, after: string): ConfigLines {
  const [old, next] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start++
  let end = 0
  while (end < old.length - start && end < next.length - start && old.at(-1 - end) === next.at(-1 - end)) end++
  return { added: next.slice(start, next.length - end), removed: old.slice(start, old.length - end) }
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
