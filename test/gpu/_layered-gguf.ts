import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tensor, writeGguf } from '../../bin/gguf-writer.ts'

const GiB = 2 ** 30

/** Writes a sparse GGUF file with so many gigabytes in 40 layers, of a model trained for so many tokens; returns its path. */
export function layeredGguf(folder: string, gigabytes: number, trained: number): string {
  const path = join(folder, `${gigabytes}-${trained}.gguf`)
  const fields = {
    block_count: 40,
    context_length: trained,
    embedding_length: 5120,
    feed_forward_length: 13_824,
    vocab_size: 32_000,
    'attention.head_count': 40,
    'attention.head_count_kv': 8,
  }
  const header = Object.entries(fields).map(([key, value]) => [`llama.${key}`, ['u32', value]])
  const weights = new Map([['token_embd.weight', 5120 * 32_000]]).set('output.weight', 5120 * 32_000)
  for (let at = 0; at < 40; at++) weights.set(`blk.${at}.weight`, Math.floor((gigabytes * GiB) / 40 / 4))
  const tensors = [...weights.keys()].map(name => tensor(name, [1], 0))
  const architecture = {
    'general.architecture': ['string', 'llama'] as const,
    'tokenizer.chat_template': ['string', '{{ messages }}'] as const,
  }
  const file = writeGguf({ ...architecture, ...Object.fromEntries(header) }, tensors)
  // The header names more numbers than the file has: after the name and the number of dimensions.
  for (const [name, numbers] of weights) file.writeBigUInt64LE(BigInt(numbers), file.indexOf(name) + name.length + 4)
  writeFileSync(path, file)
  truncateSync(path, (gigabytes + 2) * GiB)
  return path
}
