import { type GgufContents, parseGguf } from '../gguf-format.ts'
import { type GgufHeader, ggufHeader } from '../gguf-header.ts'
import { type RangeTools, readRanges } from './read-ranges.ts'

/**
 * Reads the header of a GGUF model on a server, from its files in order. Null if the server does not support ranges.
 * Rejects with Failure like `readGgufHeader`, and for network errors.
 */
export async function readRemoteHeader(
  files: readonly { name: string; url: string; size: number }[],
  tools: RangeTools,
): Promise<GgufHeader | null> {
  const contents: GgufContents[] = []
  for (const { name, url, size } of files) {
    const content = await readRanges(parseGguf(name, size), { url, size }, tools)
    if (content === null) return null
    contents.push(content)
  }
  return ggufHeader(files[0]!.name, contents)
}
