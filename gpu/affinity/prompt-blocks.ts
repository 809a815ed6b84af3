/** Bytes of a block: about 100 tokens. Shorter ones find more of a prompt and take more memory. */
export const blockBytes = 384
/** Later bytes of a prompt are not looked at: 200,000 tokens. */
const maxBlocks = 2_048

/** Where the prompt begins in the bodies that engines get. What stands before it, such as a temperature, is not computed. */
const starts = ['"messages":', '"prompt":', '"input":']

function startOf(body: string | Uint8Array): number {
  const buffer = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  for (const name of starts) {
    const at = buffer.indexOf(name)
    if (at >= 0) return at + name.length
  }
  return 0
}

/** Where the name of the model stands, if it comes before the prompt: each adapter computes something else. */
function nameOf(body: string | Uint8Array, before: number): [start: number, end: number] {
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const start = text.indexOf('"model":')
  return start < 0 || start > before ? [0, 0] : [start, text.indexOf(',', start)]
}

/**
 * Returns a hash for each whole block of the prompt in the body of a request, each of the model and everything up to the end of its
 * block: prompts have as many first hashes in common as blocks. Hashes are integers of up to 52 bits: equal ones of
 * different prompts only cost a cache that is not there.
 */
export function promptBlocks(body: string | Uint8Array): number[] {
  const start = startOf(body)
  const blocks = Math.min(maxBlocks, Math.floor((body.length - start) / blockBytes))
  const hashes: number[] = []
  let [low, high] = [0x811c9dc5, 0x9e3779b9]
  const isText = typeof body === 'string'
  const [from, to] = nameOf(body, start)
  for (let at = from; at < to; at++) {
    low = Math.imul(low ^ (isText ? body.charCodeAt(at) : body[at]!), 0x01000193)
    high = (high + low) >>> 0
  }
  for (let block = 0, at = start; block < blocks; block++) {
    for (const end = at + blockBytes; at < end; at++) {
      const unit = isText ? body.charCodeAt(at) : body[at]!
      low = Math.imul(low ^ unit, 0x01000193)
      high = Math.imul(high + unit, 0x85ebca6b) ^ (high >>> 13)
    }
    hashes.push((high & 0xfffff) * 0x100000000 + (low >>> 0))
  }
  return hashes
}
