import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { faults } from './plant.ts'

test.each(faults)('$file has the text of its fault once, and its tests exist: $find', fault => {
  expect(readFileSync(fault.file, 'utf8').split(fault.find)).toHaveLength(2)
  expect(fault.replace).not.toBe(fault.find)
  expect(fault.tests).not.toEqual([])
  expect(fault.tests.filter(path => !existsSync(path))).toEqual([])
})
