import { randomBytes } from 'node:crypto'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { base64PiecesOf, chunkBytes } from '../../../../server/http/answer/send-pieces.ts'
import type { ClientExchange } from '../../../../server/http/request/exchange.ts'

test('the memory of concurrent readers is bounded together', () => {
  expect(chunkBytes(0)).toBe(256 << 10)
  expect(chunkBytes(1)).toBe(256 << 10)
  let held = 0
  // Each holds the piece that it got first, and reads no further.
  for (let reader = 1; reader <= 12_000; reader++) held += chunkBytes(reader)
  expect(held).toBeLessThan(350 << 20)
  expect(chunkBytes(12_000)).toBe(16 << 10)
})

const largest = 192 << 10
test.each([
  ...[0, 1, 2, 3, 4, largest - 1, largest, largest + 1, 2 * largest + 2].map(bytes => [bytes, 1] as const),
  // A piece is then no multiple of three bytes.
  ...[(16 << 10) - 1, 16 << 10, (48 << 10) + 2].map(bytes => [bytes, 2_000] as const),
])('%i bytes in base64, beside %i readers: one text, in short pieces', async (bytes, count) => {
  const folder = await mkdtemp(join(tmpdir(), 'infer-pour-'))
  try {
    const content = randomBytes(bytes)
    await writeFile(join(folder, 'file'), content)
    await using file = await open(join(folder, 'file'))
    const exchange = { streams: { count } } as ClientExchange
    const pieces: Buffer[] = []
    for await (const piece of base64PiecesOf(exchange, file, bytes)) pieces.push(Buffer.from(piece))
    expect(Buffer.concat(pieces).toString('latin1')).toBe(content.toString('base64'))
    expect(Math.max(0, ...pieces.map(({ length }) => length))).toBeLessThanOrEqual(256 << 10)
    expect(pieces.length).toBeGreaterThanOrEqual(Math.ceil(bytes / largest))
  } finally {
    await rm(folder, { recursive: true })
  }
})
