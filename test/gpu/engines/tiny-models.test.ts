import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { tinyChatRandom, tinyModels } from '../../../bin/tiny-models.ts'

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('the models that ship with the program', () => {
  // The bytes are part of a release: whoever changes a weight or a word changes them here knowingly.
  test.each([
    ['tiny-chat.gguf', 'ddc123f43894d7ed680552ccf7e49c0f909d3c173c80c5ce22127a706ff0aaf7'],
    ['tiny-embed.gguf', 'af63653f8c51c8919ffdfc446a436de0b703ed5a7200ecf9484c73da5927d1ab'],
    ['tiny-rerank.gguf', '227f58448ce704acfbdb28ce22476616382cf2b50a47386a0f291c9c2fe19877'],
  ] as const)('%s has the same bytes on every build', (name, sha256) => {
    const bytes = tinyModels[name]()
    expect(bytes.subarray(0, 4).toString()).toBe('GGUF')
    expect(bytes.length).toBeLessThan(900_000)
    expect(digest(bytes)).toBe(sha256)
  })

  test('say in their own words that they are toys', () => {
    for (const make of Object.values(tinyModels)) expect(make().toString('latin1')).toContain('A hand-made toy')
  })

  test('random weights follow their seed', () => {
    expect(digest(tinyChatRandom(5))).toBe(digest(tinyChatRandom(5)))
    expect(digest(tinyChatRandom(5))).not.toBe(digest(tinyChatRandom(6)))
  })
})
