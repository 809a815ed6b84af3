import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync } from 'node:fs'
import { machine, type } from 'node:os'
import { build, packaged, selfCommand } from '../../../core/assets.ts'
import type { Connection } from './connection.ts'
import { quoted } from './ssh-command.ts'

/** The folder of a machine for everything of infer: programs, copies of models, and what runs. */
export const folderThere = (cache: string): string => `${cache}/infer`

/** A script that runs the agent there, for engines of `id` in a folder of their own. */
export function agentScript(
  { box }: Connection,
  program: readonly string[],
  { id, orphanGraceMs }: { id: string; orphanGraceMs: number },
): string {
  const folder = `${folderThere(box.cache)}/pools/${createHash('sha256').update(id).digest('hex').slice(0, 12)}`
  const words = [...program, 'engine', 'pool', '--folder', folder, '--orphan-grace', String(orphanGraceMs)]
  return `exec ${words.map(quoted).join(' ')}`
}

/**
 * Returns the words that start this very program on the other machine. The executable is copied there, once for each
 * build; a program that is not packed must be there at the same path. Rejects with a sentence.
 */
export async function programThere(connection: Connection, host: string): Promise<readonly string[]> {
  const { box } = connection
  const here = `${type()} ${machine()}`
  if (box.system !== here)
    throw new Error(`'${host}' is ${box.system}, and this executable is for ${here}. Use a machine of the same kind.`)
  if (!packaged) {
    const { file, args } = selfCommand([])
    return [file, ...args]
  }
  const folder = `${folderThere(box.cache)}/programs/${build}`
  const path = `${folder}/infer`
  const found = await connection.run(`test -x ${quoted(path)} && echo yes || echo no`)
  // What it unpacks stays beside it, apart from an infer of the machine itself.
  const words = ['env', `INFER_CACHE_DIR=${folder}/files`, path]
  if (found.stdout.trim().endsWith('yes')) return words
  const input = openSync('/proc/self/exe', 'r')
  try {
    const part = quoted(`${path}.part`)
    // The input also ends where the connection does, so the size is checked.
    const write = `cat > ${part} && test "$(wc -c < ${part})" -eq ${fstatSync(input).size} && chmod 700 ${part}`
    const script = `umask 077; mkdir -p ${quoted(folder)} && ${write} && mv ${part} ${quoted(path)}`
    const child = connection.start(script, input)
    let errors = ''
    child.stdout!.resume()
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (errors += text))
    const [code] = (await once(child, 'close')) as [number | null]
    if (code !== 0)
      throw new Error(`infer could not be copied to '${host}': ${errors.trim() || `ssh ended (${code})`}.`)
  } finally {
    closeSync(input)
  }
  return words
}
