import { statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { CommandFailure, exitCodes, usage } from '../exit-codes.ts'

/** Where what was made is to be saved. */
export type OutputTarget =
  | { kind: 'stdout' }
  /** Taken as it is: whoever names a file means it, even when there is one. */
  | { kind: 'file'; path: string }
  /** Named after what was asked for; never over another file. */
  | { kind: 'folder'; path: string }

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false })

/** What `--out` means. Throws when that folder is not there: said before the work is begun. */
export function outputTargetOf(out: string | undefined): OutputTarget {
  if (out === '-') return { kind: 'stdout' }
  if (out === undefined) return { kind: 'folder', path: '.' }
  if (out === '') throw usage('--out is empty. Name a file or a folder.')
  if (statOf(out)?.isDirectory()) return { kind: 'folder', path: out }
  if (/[/\\]$/.test(out)) {
    if (statOf(out.replace(/[/\\]+$/, ''))) throw usage(`--out ${out} is no folder.`)
    return { kind: 'folder', path: out }
  }
  const parent = dirname(out)
  if (!statOf(parent)?.isDirectory())
    throw new CommandFailure(
      exitCodes.io,
      'invalid_value',
      `There is no folder ${parent} to save ${basename(out)} in. Make it first: mkdir -p ${parent}`,
    )
  return { kind: 'file', path: out }
}

const formats: Record<string, string> = {
  '.png': 'png',
  '.jpg': 'jpeg',
  '.jpeg': 'jpeg',
  '.webp': 'webp',
  '.mp4': 'mp4',
}
const extensions: Record<string, string> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/webp': '.webp',
  'video/mp4': '.mp4',
}

/** The format that the name of a file asks for; undefined where it asks for none. */
export const formatOf = (path: string): string | undefined => formats[extname(path).toLowerCase()]

/** The end of the name of a file of this type; from the server's own name of it where the type is not known. */
export const extensionFor = (contentType: string | undefined, serverName: string | undefined): string =>
  extensions[contentType ?? ''] ?? /\.[a-z0-9]{1,5}$/i.exec(serverName ?? '')?.[0].toLowerCase() ?? ''

/** The first words of a text as part of a file name: letters and digits of any script, at most 40 of them. */
export function fileNameWords(text: string): string {
  const words = text
    .normalize('NFC')
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter(word => word !== '')
  let name = ''
  for (const word of words) {
    const longer = name === '' ? word : `${name}-${word}`
    if (Array.from(longer).length > 40) break
    name = longer
  }
  return name === ''
    ? Array.from(words[0] ?? '')
        .slice(0, 40)
        .join('')
    : name
}

/** How a file is called when nobody said it: what was asked for, the seed that makes it again, and the suffix. */
export const nameFor = (topic: string, seed: number | undefined, suffix = ''): string =>
  [fileNameWords(topic) || 'infer', seed === undefined ? '' : String(seed), suffix]
    .filter(part => part !== '')
    .join('-')

/** `cat.png`, `cat-2.png`, `cat-3.png`, …: the same file with a number. The first has none. */
export function numbered(folder: string, name: string, extension: string, number: number): string {
  return join(folder, `${name}${number === 1 ? '' : `-${number}`}${extension}`)
}

/** The named file for each of several results: `cat-1.png`, `cat-2.png`; itself when there is only one. */
export function numberedPaths(path: string, count: number): string[] {
  if (count === 1) return [path]
  const extension = extname(path)
  const stem = path.slice(0, path.length - extension.length)
  return Array.from({ length: count }, (_, at) => `${stem}-${at + 1}${extension}`)
}
