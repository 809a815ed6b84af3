import { expect, test } from 'vitest'
import { SwapSet, type SwapSetMember } from '../../core/swap-set.ts'

interface Named extends SwapSetMember {
  name: number
}
const member = (name: number): Named => ({ name, setIndex: -1 })
const names = (set: SwapSet<Named>) => [...set].map(({ name }) => name).sort((a, b) => a - b)

test('has the members that a Set has, after any changes', () => {
  const set = new SwapSet<Named>()
  const model = new Set<Named>()
  const all = Array.from({ length: 20 }, (_, at) => member(at))
  let seed = 7
  for (let step = 0; step < 5_000; step++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    const one = all[(seed >> 8) % all.length]!
    if (model.has(one)) {
      set.delete(one)
      model.delete(one)
    } else {
      // Deleting a member that is absent does nothing.
      set.delete(one)
      set.add(one)
      model.add(one)
    }
    expect(set.size).toBe(model.size)
    expect(names(set)).toEqual([...model].map(({ name }) => name).sort((a, b) => a - b))
  }
})

test('a member deleted during the iteration removes no other', () => {
  const set = new SwapSet<Named>()
  const all = [0, 1, 2, 3].map(member)
  for (const one of all) set.add(one)
  const seen: number[] = []
  for (const one of set) {
    seen.push(one.name)
    set.delete(one)
  }
  expect(seen).toEqual([0, 1, 2, 3])
  expect(set.size).toBe(0)
})

test('a member of another set is not deleted from this one', () => {
  const here = new SwapSet<Named>()
  const there = new SwapSet<Named>()
  const [one, other] = [member(1), member(2)]
  here.add(one)
  there.add(other)
  here.delete(other)
  expect(names(here)).toEqual([1])
  expect(names(there)).toEqual([2])
})
