import { beforeEach, describe, expect, test } from 'vitest'
import { lostCards, parseCardFaults, xidIn } from '../../../gpu/devices/card-faults.ts'
import { type Device, type Discovery, noReadings } from '../../../gpu/devices/device.ts'
import { fields } from '../../../gpu/devices/nvidia.ts'
import { type CardHealth, openCardHealth } from '../../../gpu/placement/card-health.ts'
import { cardLine } from '../../fixtures/nvidia-smi.ts'

const card = (id: string): Device => ({
  id,
  kind: 'nvidia',
  name: 'L4',
  totalBytes: 2 ** 34,
  usedBytes: 5,
  ...noReadings,
  cudaId: id.slice(3),
  uuid: null,
  cores: null,
})
const both = [card('gpu0'), card('gpu1')]

let now = 0
let said: string[]
let cards: readonly Device[]
let health: CardHealth

beforeEach(() => {
  now = 0
  said = []
  cards = both
  const say = (message: string, fields: object = {}) => void said.push(`${message}: ${Object.values(fields).join(' ')}`)
  health = openCardHealth(
    { warn: say, info: say },
    (id, { isFatal }) => void said.push(`${id} ${isFatal ? 'ends' : 'empties'}`),
    () => now,
  )
})

/** A measurement after so many seconds; by default both cards answer. */
function measure(seconds: number, of: Partial<Discovery> = {}): (string | undefined)[] {
  now += seconds * 1000
  cards = health.seen(cards, { devices: both, reason: null, broken: false, ...of })
  return cards.map(({ id }) => health.faultOf(id))
}

describe('a card with a fault', () => {
  test('that is not listed any more stays with the reason, and comes back by itself', () => {
    expect(measure(5, { devices: [card('gpu1')] })).toEqual(['nvidia-smi does not list it any more.', undefined])
    expect(cards).toMatchObject([
      { id: 'gpu0', usedBytes: null },
      { id: 'gpu1', usedBytes: 5 },
    ])
    measure(5, { devices: [card('gpu1')] })
    expect(said).toEqual(['A GPU is not used any more: gpu0 nvidia-smi does not list it any more.', 'gpu0 ends'])
    measure(5)
    expect(measure(5)).toEqual([undefined, undefined])
    expect(said.at(-1)).toBe('A GPU is used again: gpu0')
  })

  test('does not give its number to another one', () => {
    cards = both.map((one, at) => ({ ...one, uuid: `GPU-${at}` }))
    measure(5, { devices: [{ ...card('gpu0'), uuid: 'GPU-1' }] })
    expect(cards).toMatchObject([
      { id: 'gpu0', uuid: 'GPU-0', usedBytes: null },
      { id: 'gpu1', cudaId: '0', usedBytes: 5 },
    ])
    expect(health.faultOf('gpu1')).toBeUndefined()
  })

  test('is tried later after each further fault', () => {
    const lasts = () => {
      measure(0, { devices: [card('gpu1')] })
      let seconds = 0
      while (measure(1)[0] !== undefined) seconds++
      return seconds
    }
    expect([lasts(), lasts(), lasts()]).toEqual([4, 9, 19])
  })

  test('of its memory gets no further engine until it is reset', () => {
    const faulty = [{ id: 'gpu1', reason: 'It must be reset.' }]
    measure(5, { faulty })
    for (let minutes = 0; minutes < 90; minutes++) expect(measure(60, { faulty })[1]).toBe('It must be reset.')
    expect(said).toEqual(['A GPU is not used any more: gpu1 It must be reset.', 'gpu1 empties'])
    measure(30)
    expect(measure(60)).toEqual([undefined, undefined])
  })

  test('that the kernel has reported once is used again after a minute', () => {
    expect(measure(5, { faulty: [{ id: 'gpu1', reason: 'Xid 95.', isFatal: true }] })[1]).toBe('Xid 95.')
    expect(measure(50)[1]).toBe('Xid 95.')
    expect(measure(10)[1]).toBeUndefined()
  })

  test('is one on which engines of two models fail and none works', () => {
    health.engineFailed('gpu0', 'a', { works: false })
    health.engineFailed('gpu0', 'a', { works: false })
    expect(measure(0)).toEqual([undefined, undefined])
    health.engineFailed('gpu0', 'b', { works: false })
    expect(measure(0)[0]).toBe('Engines of 2 models have failed on it by errors of the GPU.')
  })

  test('is none on which another engine works, or has worked since', () => {
    health.engineFailed('gpu0', 'a', { works: false })
    health.engineReady(['gpu0'])
    health.engineFailed('gpu0', 'b', { works: false })
    health.engineFailed('gpu0', 'c', { works: true })
    expect(measure(0)).toEqual([undefined, undefined])
  })
})

describe('faults that the driver reports', () => {
  test.each(['[Unknown Error]', '[GPU is lost]', 'Unknown Error'])('%s in the place of the memory', words => {
    const csv = `${cardLine()}\n${cardLine({ index: 1, 'memory.total': words, 'memory.used': words })}`
    expect(lostCards(csv, fields).map(({ id }) => id)).toEqual(['gpu1'])
  })

  test('cards without own memory, or in MIG mode, are not lost', () =>
    expect(lostCards(cardLine({ 'memory.total': '[N/A]' }), fields)).toEqual([]))

  test('of memory, by their fields', () => {
    const csv = `0, 00000000:41:00.0, No, No, No
1, 00000000:61:00.0, Yes, [N/A], [N/A]
2, 00000000:81:00.0, [N/A], 1, 0
3, 00000000:A1:00.0, [N/A], No, Yes
4, 00000000:C1:00.0, [N/A], [N/A], [N/A]`
    const { faulty, buses } = parseCardFaults(csv)
    expect(faulty.map(({ id, reason }) => `${id} ${reason}`)).toEqual([
      'gpu1 Its memory has errors: it must be reset (nvidia-smi -r).',
      'gpu2 Its memory has errors: it must be reset (nvidia-smi -r).',
      'gpu3 Its memory has errors that could not be repaired.',
    ])
    expect(buses.get('0000:a1:00')).toBe('gpu3')
  })

  test('of the kernel, but not errors of programs', () => {
    const line = (number: number, text: string) => `4,1,2,-;NVRM: Xid (PCI:0000:41:00): ${number}, ${text}`
    expect(xidIn(line(79, 'pid=1234, name=vllm, GPU has fallen off the bus.'))).toEqual({
      bus: '0000:41:00',
      reason: 'The kernel reports Xid 79: GPU has fallen off the bus.',
    })
    expect(xidIn(line(13, 'pid=1, Graphics Exception'))).toBeUndefined()
    expect(xidIn('6,2,3,-;usb 1-1: new device')).toBeUndefined()
  })
})
