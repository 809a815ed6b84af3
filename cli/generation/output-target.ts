import { statSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { CommandFailure, exitCodes, usageFailure } from '../terminal/exit-codes.ts'

/** Where to save the result. */
export type OutputTarget =
  | { kind: 'stdout' }
  /** Overwritten if it exists, because the user named it. */
  | { kind: 'file'; path: string }
  /** The file name is made from the prompt, and never overwrites a file. */
  | { kind: 'folder'; path: string }

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false })

/** Reads `--out`. Throws if the folder does not exist; called before the work begins. */
export function outputTargetOf(out: string | undefined): OutputTarget {
  if (out === '-') return { kind: 'stdout' }
  if (out === undefined) return { kind: 'folder', path: '.' }
  if (out === '') throw usageFailure('--out is empty. Name a file or a folder.')
  if (statOf(out)?.isDirectory()) return { kind: 'folder', path: out }
  if (/[/\\]$/.test(out)) {
    if (statOf(out.replace(/[/\\]+$/, ''))) throw usageFailure(`--out ${out} is not a folder.`)
    return { kind: 'folder', path: out }
  }
  const parent = dirname(out)
  if (!statOf(parent)?.isDirectory())
    throw new CommandFailure(
      exitCodes.io,
      'invalid_value',
      `There is no folder ${parent} to save ${basename(out)} in. Create it first: mkdir -p ${parent}`,
    )
  return { kind: 'file', path: out }
}

/** Formats of images and videos. */
export type FileFormat = 'png' | 'jpeg' | 'webp' | 'mp4'
const formats: Record<string, FileFormat> = {
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

/** Returns the format that a file name's extension means; undefined for an unknown extension. */
export const formatOf = (path: string): FileFormat | undefined => formats[extname(path).toLowerCase()]

/** Returns the extension for a content type; for an unknown type that of the server's file name. */
export const extensionFor = (contentType: string | undefined, serverName: string | undefined): string =>
  extensions[contentType ?? ''] ?? /\.[a-z0-9]{1,5}$/i.exec(serverName ?? '')?.[0].toLowerCase() ?? ''

/** Returns the first words of a text for a file name: letters and digits of any script, at most 40 characters. */
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

/** Returns a default file name: the topic, the seed that reproduces the result, and the suffix. */
export const nameFor = (topic: string, seed: number | undefined, suffix = ''): string =>
  [fileNameWords(topic) || 'infer', seed === undefined ? '' : String(seed), suffix]
    .filter(part => part !== '')
    .join('-')

/** Adds a number to a file name: `cat.png`, `cat-2.png`, `cat-3.png`, … The first has none. */
export function numbered(folder: string, name: string, extension: string, number: number): string {
  return join(folder, `${name}${number === 1 ? '' : `-${number}`}${extension}`)
}

/** Returns a path for each of several results: `cat-1.png`, `cat-2.png`; the path itself for one result. */
export function numberedPaths(path: string, count: number): string[] {
  if (count === 1) return [path]
  const extension = extname(path)
  const stem = path.slice(0, path.length - extension.length)
  return Array.from({ length: count }, (_, at) => `${stem}-${at + 1}${extension}`)
}
