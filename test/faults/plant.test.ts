import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { faults, numbersOf } from './plant.ts'

test.each(faults)('$file has the text of its fault once, and its tests exist: $find', fault => {
  expect(readFileSync(fault.file, 'utf8').split(fault.find)).toHaveLength(2)
  expect(fault.replace).not.toBe(fault.find)
  expect(fault.tests).not.toEqual([])
  expect(fault.tests.filter(path => !existsSync(path))).toEqual([])
})

test('faults are chosen by number, or all', () => {
  expect(numbersOf(['2', '0'])).toEqual([2, 0])
  expect(numbersOf([])).toHaveLength(faults.length)
})

test.each(['-1', '1.5', 'all', `${faults.length}`])('a number without a fault is refused: %s', number => {
  expect(() => numbersOf(['0', number])).toThrow(
    `There are faults 0 to ${faults.length - 1} in test/faults/faults.json.`,
  )
})
