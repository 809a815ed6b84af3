import { expect, test } from 'vitest'
import { valueDifferences } from '../../../../../../server/console/app/components/difference/value-differences.ts'

const vector = (first: number) => [first, ...Array.from({ length: 20 }, (_, at) => at)]

test.each<[name: string, before: unknown, after: unknown, found: [string, unknown, unknown][]]>([
  ['equal values', { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
  ['a text', 'one', 'two', [['', 'one', 'two']]],
  ['a member deep inside', { a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 1 }, { b: 3 }] }, [['a.1.b', 2, 3]]],
  ['a member that one lacks', { a: 1 }, { a: 1, b: 2 }, [['b', undefined, 2]]],
  ['a member that is null in one', { a: null }, {}, [['a', null, undefined]]],
  ['a list that is longer', { a: ['x'] }, { a: ['x', 'y'] }, [['a.1', undefined, 'y']]],
  ['values of another kind', { a: [1] }, { a: { 0: 1 } }, [['a', [1], { 0: 1 }]]],
  ['a value and nothing', null, { a: 1 }, [['', null, { a: 1 }]]],
  ['names of objects', {}, { constructor: 1 }, [['constructor', undefined, 1]]],
  ['a vector, as a whole', { v: vector(1) }, { v: vector(2) }, [['v', vector(1), vector(2)]]],
  ['equal vectors', { v: vector(1) }, { v: vector(1) }, []],
  ['a long list beside a short one', { v: vector(1) }, { v: [] }, [['v', vector(1), []]]],
])('%s', (_, before, after, found) => {
  const differences = valueDifferences(before, after)
  expect(differences.found.map(one => [one.path.join('.'), one.before, one.after])).toEqual(found)
  expect(differences.more).toBe(false)
})

test('a hundred differences are enough, and it is said that there are more', () => {
  const records = (value: number, count: number) => Array.from({ length: count }, () => ({ value }))
  expect(valueDifferences(records(1, 100), records(2, 100)).more).toBe(false)
  const { found, more } = valueDifferences(records(1, 5_000), records(2, 5_000))
  expect([found.length, more]).toEqual([100, true])
})
