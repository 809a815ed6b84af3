import { expect, test } from 'vitest'
import { openEnergy } from '../../../gpu/devices/energy.ts'

function opened() {
  let now = 0
  const energy = openEnergy(() => now)
  return {
    energy,
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('a slot alone on a device gets all of its energy, in millijoules', () => {
  const { energy, pass } = opened()
  energy.measured('gpu0', 300)
  const slot = energy.take(['gpu0'])
  pass(2_000)
  expect(energy.since(slot)).toBe(600_000)
  energy.measured('gpu0', 100)
  pass(1_000)
  expect(energy.since(slot)).toBe(700_000)
})

test('slots share the energy of a device by their time: the sum is the energy while it worked', () => {
  const { energy, pass } = opened()
  energy.measured('gpu0', 100)
  const first = energy.take(['gpu0'])
  pass(1_000)
  const second = energy.take(['gpu0'])
  pass(1_000)
  const ofFirst = energy.since(first)!
  energy.release(first)
  pass(1_000)
  const ofSecond = energy.since(second)!
  energy.release(second)
  pass(1_000)
  expect([ofFirst, ofSecond]).toEqual([150_000, 150_000])
  expect(energy.since(energy.take(['gpu0']))).toBe(0)
})

test('an engine on two devices has the energy of both', () => {
  const { energy, pass } = opened()
  energy.measured('gpu0', 100)
  energy.measured('gpu1', 50)
  const slot = energy.take(['gpu0', 'gpu1'])
  pass(100)
  expect(energy.since(slot)).toBe(15_000)
})

test.each([
  ['without devices', []],
  ['on the processor, which reports no power', ['cpu']],
  ['if one of two devices reports no power', ['gpu0', 'gpu0.1']],
])('the energy is not known %s', (_, devices) => {
  const { energy, pass } = opened()
  energy.measured('gpu0', 100)
  const slot = energy.take(devices)
  pass(10)
  expect(energy.since(slot)).toBeNull()
})

test('the energy is not known if a device has stopped reporting, and known again afterwards', () => {
  const { energy, pass } = opened()
  energy.measured('gpu0', 100)
  const slot = energy.take(['gpu0'])
  pass(10)
  energy.measured('gpu0', null)
  pass(10)
  energy.measured('gpu0', 100)
  expect(energy.since(slot)).toBeNull()
  const later = energy.take(['gpu0'])
  pass(10)
  expect(energy.since(later)).toBe(500)
})
