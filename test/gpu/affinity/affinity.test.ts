import { describe, expect, test } from 'vitest'
import { chooseReplica, type Replica } from '../../../gpu/affinity/choose-replica.ts'
import { openPrefixIndex } from '../../../gpu/affinity/prefix-index.ts'
import { blockBytes, promptBlocks } from '../../../gpu/affinity/prompt-blocks.ts'

const commonStart = (a: readonly number[], b: readonly number[]) => {
  const at = a.findIndex((hash, index) => hash !== b[index])
  return at < 0 ? a.length : at
}
const message = (content: string) => ({ role: 'user', content })
const bodyOf = (messages: object[], before = {}) => JSON.stringify({ ...before, model: 'm', messages, stream: true })

describe('the blocks of a prompt', () => {
  const [long, longer] = ['a'.repeat(4_000), 'b'.repeat(4_000)]
  test('begin as those of the conversation before, whatever stands before the messages', () => {
    const first = promptBlocks(bodyOf([message(long)]))
    const second = promptBlocks(bodyOf([message(long), message(longer)], { temperature: 0.7 }))
    expect(first.length).toBe(Math.floor(4_000 / blockBytes))
    expect(commonStart(first, second)).toBeGreaterThanOrEqual(first.length - 1)
    expect(second.length).toBeGreaterThan(first.length * 1.9)
  })
  test('differ for another model: adapters compute something else', () => {
    const body = bodyOf([message(long)])
    const [one, other] = [promptBlocks(body), promptBlocks(body.replace('"m"', '"n"'))]
    expect(commonStart(one, other)).toBe(0)
  })
  test('differ from the first difference on', () => {
    const one = promptBlocks(bodyOf([message(long), message(longer)]))
    const other = promptBlocks(bodyOf([message(long), message(long)]))
    const common = commonStart(one, other)
    expect(common).toBe(Math.floor(4_000 / blockBytes))
    expect(one.slice(common).filter(hash => other.includes(hash))).toEqual([])
  })
  test('are the same for text and bytes, and none for a short prompt', () => {
    const text = bodyOf([message(long)])
    expect(promptBlocks(Buffer.from(text))).toEqual(promptBlocks(text))
    expect(promptBlocks(bodyOf([message('Hello')]))).toEqual([])
  })
})

describe('what engines have computed', () => {
  test('counts from the first block on', () => {
    const index = openPrefixIndex(10)
    index.add('a', [1, 2, 3])
    expect(index.common('a', [1, 2, 4])).toBe(2)
    expect(index.common('a', [2, 3])).toBe(2)
    expect(index.common('a', [4, 1])).toBe(0)
    expect(index.common('b', [1])).toBe(0)
  })
  test('is bounded: the ends of the prompts of longest ago are forgotten first', () => {
    const index = openPrefixIndex(4)
    index.add('a', [1, 2, 3])
    index.add('a', [1, 7, 8])
    expect(index.size('a')).toBe(4)
    expect([index.common('a', [1, 7, 8]), index.common('a', [1, 2, 3])]).toEqual([3, 2])
    index.add('a', [20, 21, 22, 23, 24, 25])
    expect([index.size('a'), index.common('a', [20, 21, 22, 23, 24])]).toEqual([4, 4])
  })
  test('of an engine that has ended is forgotten', () => {
    const index = openPrefixIndex(4)
    for (const id of ['a', 'b']) index.add(id, [1])
    index.keep(new Set(['b']))
    expect([index.common('a', [1]), index.common('b', [1]), index.engines]).toEqual([0, 1, 1])
  })
})

describe('the engine of a prompt', () => {
  const replica = (engineId: string, of: Partial<Replica> = {}): Replica => ({
    engineId,
    leases: 0,
    slots: 8,
    common: 0,
    known: 0,
    ...of,
  })
  test.each<[string, Replica[], string | undefined]>([
    ['has most of it', [replica('a', { common: 5 }), replica('b', { common: 9 })], 'b'],
    ['is the least busy, where little is known of it', [replica('a', { common: 2, leases: 1 }), replica('b')], 'b'],
    ['of equally busy ones has the fewest blocks', [replica('a', { known: 90 }), replica('b', { known: 10 })], 'b'],
    [
      'is not one that is busier than the average by more than a quarter',
      [replica('a', { common: 50, leases: 5 }), replica('b', { leases: 2 }), replica('c', { leases: 3 })],
      'b',
    ],
    ['may be a little busier', [replica('a', { common: 50, leases: 3 }), replica('b', { leases: 3 })], 'a'],
    ['may have a few requests, however idle others are', [replica('a', { common: 50, leases: 2 }), replica('b')], 'a'],
    ['is another where it has more', [replica('a', { common: 50, leases: 3 }), replica('b')], 'b'],
    ['has a free slot', [replica('a', { common: 50, leases: 8 }), replica('b', { leases: 7 })], 'b'],
    ['does not exist while none has', [replica('a', { leases: 8 }), replica('b', { leases: 8 })], undefined],
  ])('%s', (_, replicas, chosen) => expect(chooseReplica(replicas)?.engineId).toBe(chosen))
})
