import { stat } from 'node:fs/promises'
import { type GgufHeader, readGgufHeader } from './gguf-header.ts'
import { partsOf } from './gguf-parts.ts'

/** Most models whose headers are kept; each takes some kilobytes. */
const maxKept = 256

/**
 * Returns a `readGgufHeader` that reads a model again only when the size or the time of one of its files has changed:
 * skipping a vocabulary takes 15 to 50 ms.
 */
export function openGgufHeaders(read = readGgufHeader): (path: string) => Promise<GgufHeader> {
  const kept = new Map<string, { version: string; header: Promise<GgufHeader> }>()

  return async path => {
    const version = await versionOf(path)
    const known = kept.get(path)
    kept.delete(path)
    const header = known?.version === version ? known.header : read(path)
    kept.set(path, { version, header })
    for (const [oldest] of kept) if (kept.size > maxKept) kept.delete(oldest)
    // A file that cannot be read now may be readable later without a change.
    header.catch(() => kept.delete(path))
    return header
  }
}

/** What changes with every change of a file of the model. */
async function versionOf(path: string): Promise<string> {
  const files = await Array.fromAsync(partsOf(path), part => stat(part).catch(() => undefined))
  return files.map(file => (file ? `${file.ino} ${file.size} ${file.mtimeMs}` : '')).join()
}
