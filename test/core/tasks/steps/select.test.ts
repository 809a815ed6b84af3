import { expect, test } from 'vitest'
import { step } from './_step.ts'

const select = async (input: unknown, ...steps: object[]) =>
  (await step<{ value: unknown }>('json/select', { input, steps })).value

const items = [
  { id: 'a', price: 3, tags: ['x'] },
  { id: 'b', price: 1, tags: [] },
  { id: 'c', tags: ['x', 'y'] },
  { id: 'd', price: 3, tags: ['z'] },
]
const ids = { pick: 'id' }

test.each<[string, unknown, object[], unknown]>([
  ['a path', { a: [{ 'b c': 1 }] }, [{ path: 'a[0]["b c"]' }], 1],
  ['the value itself', 5, [{ path: '' }], 5],
  ['equal values', items, [{ filter: { path: 'price', equals: 3 } }, ids], ['a', 'd']],
  ['missing counts as null', items, [{ filter: { path: 'price', equals: null } }, ids], ['c']],
  ['one of several', items, [{ filter: { path: 'id', in: ['b', 'c'] } }, ids], ['b', 'c']],
  ['equal lists', items, [{ filter: { path: 'tags', equals: ['x', 'y'] } }, ids], ['c']],
  ['a text in a text', ['ab', 'b', 1], [{ filter: { contains: 'a' } }], ['ab']],
  ['a value in a list', items, [{ filter: { path: 'tags', contains: 'x' } }, ids], ['a', 'c']],
  ['a pattern', ['ab', 'b', 1], [{ filter: { matches: '^a' } }], ['ab']],
  ['smaller', items, [{ filter: { path: 'price', less_than: 2 } }, ids], ['b']],
  ['greater texts', ['2026-01', '2025-12'], [{ filter: { greater_than: '2026' } }], ['2026-01']],
  ['a text that is a number counts as one', ['5', 5, '0'], [{ filter: { greater_than: 1 } }], ['5', 5]],
  ['what cannot be compared is left out', ['x', 5, null, {}], [{ filter: { greater_than: 1 } }], [5]],
  ['a part of a text or a list', ['ab', 'b', ['a']], [{ filter: { contains: 'a' } }], ['ab', ['a']]],
  ['there', items, [{ filter: { path: 'tags[0]', exists: true } }, ids], ['a', 'c', 'd']],
  ['not there', items, [{ filter: { path: 'price', exists: false } }, ids], ['c']],
  ['not', items, [{ filter: { not: { path: 'price', equals: 3 } } }, ids], ['b', 'c']],
  ['inherited members are not there', [{}], [{ filter: { path: 'constructor', exists: true } }], []],
  ['sorted', items, [{ sort_by: 'price' }, ids], ['b', 'a', 'd', 'c']],
  ['sorted, largest first', items, [{ sort_by: 'price', descending: true }, ids], ['c', 'a', 'd', 'b']],
  ['sorted by itself', [2, 'a', null, 10, 1], [{ sort_by: '' }], [1, 2, 10, 'a', null]],
  ['a slice', [1, 2, 3, 4], [{ slice: [1, 3] }], [2, 3]],
  ['the end', [1, 2, 3, 4], [{ slice: [-2] }], [3, 4]],
  [
    'members',
    items,
    [{ pick: ['id', 'price'] }, { slice: [1, 3] }],
    [
      { id: 'b', price: 1 },
      { id: 'c', price: null },
    ],
  ],
  ['members of one object', items[0], [{ pick: ['id'] }], { id: 'a' }],
  ['flat', items, [{ pick: 'tags' }, { flatten: true }], ['x', 'x', 'y', 'z']],
  ['unique', items, [{ unique_by: 'price' }, ids], ['a', 'b', 'c']],
  ['unique items', ['x', 'y', 'x'], [{ unique_by: '' }], ['x', 'y']],
  ['a number of items', items, [{ filter: { path: 'price', exists: true } }, { count: true }], 3],
  ['lists joined', [1], [{ merge: [2, 3] }], [1, 2, 3]],
  ['objects joined', { a: 1, b: 1 }, [{ merge: { b: 2 } }], { a: 1, b: 2 }],
  [
    'members added to each',
    [{ a: 1 }, { a: 2 }],
    [{ merge: { b: 3 } }],
    [
      { a: 1, b: 3 },
      { a: 2, b: 3 },
    ],
  ],
])('%s', async (_, input, steps, value) => {
  expect(await select(input, ...steps)).toEqual(value)
})

test.each<[unknown, object[], string, string]>([
  [{ a: 1 }, [{ path: 'a' }, { path: 'b' }], 'steps[1]', "Step 2: there is no 'b' in the value, which is a number."],
  [{ a: 1 }, [{ sort_by: 'a' }], 'steps[0]', "Step 1: 'sort_by' needs a list, and the value is an object."],
  [[1], [{ merge: { a: 1 } }], 'steps[0]', "the value is a list and 'merge' an object."],
  [[1], [{ count: true, path: 'a' }], 'steps[0]', 'a step has one of path, filter'],
  [[1], [{}], 'steps[0]', 'a step has one of path, filter'],
  [[1], [{ path: 'a..b' }], 'steps[0].path', 'a path is written as'],
  [[1], [{ count: true, descending: true }], 'steps[0].descending', "'descending' needs 'sort_by'."],
  [[1], [{ filter: { equals: 1, exists: true } }], 'steps[0].filter', 'a condition has one of equals'],
  [[1], [{ filter: { matches: '(a)\\1' } }], 'steps[0].filter.matches', 'back-references'],
  [[1], [{ where: 1 }], 'steps[0].where', 'where'],
  [[1], [], 'steps', 'steps'],
])('%j by %j fails at %s', async (input, steps, param, message) => {
  await expect(select(input, ...steps)).rejects.toThrow(
    expect.objectContaining({ param, message: expect.stringContaining(message) }) as Error,
  )
})

test('the input must be there', async () => {
  await expect(step('json/select', { steps: [{ count: true }] })).rejects.toThrow(
    expect.objectContaining({ code: 'missing_required_parameter', param: 'input' }) as Error,
  )
})

test.each<[string, unknown, object[]]>([
  [
    'lists that are added to each item and joined',
    Array.from({ length: 2_000 }, () => ({})),
    [{ merge: { list: Array.from({ length: 2_000 }, (_, at) => at) } }, { pick: 'list' }, { flatten: true }],
  ],
  [
    'texts that are added to each item',
    Array.from({ length: 2_000 }, () => ({})),
    [{ merge: { text: 'x'.repeat(10_000) } }, { count: true }],
  ],
  [
    'many members',
    Array.from({ length: 100_000 }, () => ({})),
    [{ pick: Array.from({ length: 50 }, (_, at) => `m${at}`) }],
  ],
])('%s are bounded', async (_, input, steps) => {
  const failure: unknown = await select(input, ...steps).catch((thrown: unknown) => thrown)
  expect(failure).toMatchObject({
    code: 'payload_too_large',
    message: expect.stringContaining('The step has more than'),
  })
})
